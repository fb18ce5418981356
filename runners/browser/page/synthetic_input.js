// What stands in for real input where none can be had: events of a script, which pages can tell from a person's.
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

const domWrite = (text) => {
  const element = target();
  if (isNativeField(element)) return setValue(text);
  focus();
  const writes = text ? ["insertText", false, text] : ["delete"];
  if (!documentOf(element).execCommand(...writes)) {
    element.textContent = text;
    tellPage(element);
  }
  return {};
};

const keyEvent = (element, kind) => dispatch(element, new KeyboardEvent(kind, {
  key: "Enter", code: "Enter", keyCode: 13, which: 13, bubbles: true, cancelable: true, composed: true,
}));
const domEnter = () => {
  const element = target();
  const goesOn = keyEvent(element, "keydown") && keyEvent(element, "keypress");
  if (goesOn && tagOf(element) !== "textarea" && element.form) submitForm(element.form);
  keyEvent(element, "keyup");
  return {};
};
