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

const keyEvent = (element, kind) => dispatch(element, new KeyboardEvent(kind, {
  key: "Enter", code: "Enter", keyCode: 13, which: 13, bubbles: true, cancelable: true, composed: true,
}));
const domEnter = () => {
  const element = target();
  const isAllowed = keyEvent(element, "keydown") && keyEvent(element, "keypress");
  if (isAllowed && tagOf(element) !== "textarea" && element.form) submitForm(element.form);
  keyEvent(element, "keyup");
  return {};
};
