// Synthetic input for when real input is not available: dispatched events, which pages can tell from real ones.
const clickOf = method(HTMLElement.prototype, "click");
const submitForm = method(HTMLFormElement.prototype, "requestSubmit");

const mouseEvent = (element, kind) =>
  dispatch(element, new MouseEvent(kind, { bubbles: true, cancelable: true, composed: true, view: viewOf(documentOf(element)) }));
const domClick = () => {
  const element = target();
  mouseEvent(element, "mousedown");
  mouseEvent(element, "mouseup");
  if (namespaceOf(element) === HTML) clickOf(element);
  else mouseEvent(element, "click");
  return {};
};

const domType = (text) => {
  const element = target();
  if (isNativeField(element)) return setValue(text);
  focus();
  const writes = text ? ["insertText", false, text] : ["delete"];
  if (!documentOf(element).execCommand(...writes)) {
    element.textContent = text;
    dispatchChange(element);
  }
  return {};
};

const ENTER = { key: "Enter", code: "Enter", keyCode: 13 };
const keyEvent = (element, kind, given = ENTER) => dispatch(element, new KeyboardEvent(kind, {
  ...given, which: given.keyCode, bubbles: true, cancelable: true, composed: true,
}));
const domEnter = () => {
  const element = target();
  const isAllowed = keyEvent(element, "keydown") && keyEvent(element, "keypress");
  if (isAllowed && tagOf(element) !== "textarea" && element.form) submitForm(element.form);
  keyEvent(element, "keyup");
  return {};
};

const ACTIVATED_BY_KEYS = "button,summary,input[type=button],input[type=submit],input[type=reset],input[type=checkbox],input[type=radio]";
const isActivatedBy = (element, key) => (key === " " && matches(element, ACTIVATED_BY_KEYS)) ||
  (key === "Enter" && matches(element, "a[href],button,summary,input[type=button],input[type=submit],input[type=reset]"));
const EDITS = { Backspace: ["delete"], Delete: ["forwardDelete"], Enter: ["insertLineBreak"] };
// Press one of the keys whose effect a script can have: on the page's listeners, in fields, on buttons and links.
const domKey = ({ key, code, keyCode, text }) => {
  const element = target();
  const given = { key, code, keyCode };
  if (isActivatedBy(element, key)) {
    if (keyEvent(element, "keydown", given) && keyEvent(element, "keyup", given)) clickOf(element);
    return {};
  }
  if (key === "Enter" && tagOf(element) === "input") return domEnter();
  const isAllowed = keyEvent(element, "keydown", given) && (!text || keyEvent(element, "keypress", given));
  const edit = EDITS[key] ?? (text ? ["insertText", false, text] : null);
  if (isAllowed && edit && (isNativeField(element) || element.isContentEditable)) documentOf(element).execCommand(...edit);
  keyEvent(element, "keyup", given);
  return {};
};
