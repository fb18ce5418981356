// List what the fields and roots of a document show, including open shadow roots and same-origin frames, so that the
// caller can check for secrets and have the fields that show one emptied.
const SHOWING_FIELDS = "input,textarea,select,[contenteditable]:not([contenteditable=false]),[role=textbox],[role=searchbox]";
const LISTED_FIELDS = (globalThis.continuityShown ??= []);
const isTextInput = (field) => isNativeField(field) && tagOf(field) !== "select";

const fieldText = (field) => (isTextInput(field) ? `${field.value}\n${field.placeholder}` : rawText(field));

const empty = (field) => {
  if (!isTextInput(field)) field.replaceChildren();
  else field.value = field.placeholder = "";
};

const rootText = (root) => {
  if (nodeKind(root) === DOCUMENT) return `${titleOf(root)}\n${bodyOf(root)?.innerText ?? ""}`;
  const texts = [];
  for (let child = firstChild(root); child; child = nextSibling(child)) texts.push(child.innerText ?? rawText(child));
  return texts.join("\n");
};

// Empty the fields at these indexes of the previous answer, and list all again.
const visibleText = (emptied) => {
  for (const at of emptied) empty(LISTED_FIELDS[at]);
  const roots = openRoots(document);
  LISTED_FIELDS.splice(0, Infinity, ...roots.flatMap((root) => [...all(root, SHOWING_FIELDS)]));
  return { fields: LISTED_FIELDS.map(fieldText), texts: roots.map(rootText) };
};
