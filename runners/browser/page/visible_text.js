// What the fields and the texts of a document show, through open shadow roots and frames of its origin, for whoever
// knows what must not be shown; the fields that show it are emptied.
const SHOWING = "input,textarea,select,[contenteditable]:not([contenteditable=false]),[role=textbox],[role=searchbox]";
const FIELDS_SHOWN = (globalThis.continuityShown ??= []);
const isTyped = (field) => isNativeField(field) && tagOf(field) !== "select";

const shownBy = (field) => (isTyped(field) ? `${field.value}\n${field.placeholder}` : rawText(field));

const empty = (field) => {
  if (!isTyped(field)) field.replaceChildren();
  else field.value = field.placeholder = "";
};

const shownIn = (root) => {
  if (nodeKind(root) === DOCUMENT) return `${titleOf(root)}\n${bodyOf(root)?.innerText ?? ""}`;
  const texts = [];
  for (let child = firstChild(root); child; child = nextSibling(child)) texts.push(child.innerText ?? rawText(child));
  return texts.join("\n");
};

// Empty those of the fields told before, by number, and tell anew.
const visibleText = (emptied) => {
  for (const at of emptied) empty(FIELDS_SHOWN[at]);
  const roots = openRoots(document);
  FIELDS_SHOWN.splice(0, Infinity, ...roots.flatMap((root) => [...all(root, SHOWING)]));
  return { fields: FIELDS_SHOWN.map(shownBy), texts: roots.map(shownIn) };
};
