// One line for each usable element: its click id, kind, label, value, state and address.
const LINE_ADDRESS_LIMIT = 120;
const LINE_OPTION_LIMIT = 40;
const MESSAGE_LIMIT = 80;

const quoted = (text) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

// A hidden checkbox, radio button or file field is used through its label.
const hiddenControlOf = (element) => {
  const control = tagOf(element) === "label" ? element.control : null;
  if (!control || !(TOGGLES.has(typeOfElement(control)) || control.type === "file")) return null;
  return visible(control) && boxOf(control).width >= 1 ? null : control;
};

const kindWord = (element, type) => {
  const tag = tagOf(element);
  if (tag === "select") return element.multiple ? "select multiple" : "select";
  if (tag === "textarea") return "textarea";
  if (tag === "input" && !hasAttr(element, "role") && !HAS_NO_VALUE.has(type)) {
    return element.type === "text" ? "input" : `input ${element.type}`;
  }
  return type === "textbox" && own(element, "isContentEditable") ? "editor" : type;
};

const optionWords = (state) => {
  const options = state.options.map((option) => shorten(option.replace(/[{}|]/g, "/"), LINE_OPTION_LIMIT));
  if (state.moreOptions) options.push(`… ${state.moreOptions} more`);
  return `{${options.join("|")}}`;
};
const valueWords = (element, type, state, secrets) => {
  if (!matches(element, FIELDS) || HAS_NO_VALUE.has(type)) return [];
  if (tagOf(element) === "select") return [`= ${state.value ?? "(none)"}`, ...(state.options ? [optionWords(state)] : [])];
  return [secrets.fields.has(element) && state.value ? `= ${MASK}` : `= ${quoted(state.value ?? "")}`];
};

// The values that a text field suggests.
const suggestionWords = (element) => {
  const options = tagOf(element) === "input" && element.list ? [...element.list.options] : [];
  if (!options.length) return [];
  const labels = options.slice(0, OPTIONS_LIMIT).map((option) => option.value || option.label);
  return [optionWords({ options: labels, moreOptions: options.length - labels.length })];
};

// A click on it submits its form.
const submitsForm = (element) => {
  const tag = tagOf(element);
  if (tag !== "button" && tag !== "input") return false;
  return (element.type === "submit" || element.type === "image") && Boolean(element.form);
};

const stateWords = (element, state) => {
  const words = ["checked", "selected", "pressed", "required", "readonly", "current"]
    .filter((name) => state[name]).map((name) => (state[name] === "mixed" ? `${name}=mixed` : name));
  if (state.expanded !== undefined) words.push(state.expanded ? "expanded" : "collapsed");
  if (submitsForm(element)) words.push("submits");
  if (state.disabled || hindrance(element, "clickable") === "disabled") words.push("disabled");
  const isRefused = matches(element, ":user-invalid");
  if (state.invalid || isRefused) words.push("invalid");
  if (isRefused && element.validationMessage) words.push(`(${shorten(element.validationMessage, MESSAGE_LIMIT)})`);
  return words;
};

const hintWords = (element, label, state) => {
  const hint = labelText(attr(element, "placeholder"));
  return hint && hint !== label && !state.value && matches(element, FIELDS) ? [`placeholder ${quoted(hint)}`] : [];
};

const elementWords = (element, secrets) => {
  const control = hiddenControlOf(element) ?? element;
  const type = typeOfElement(control);
  const names = attributeNames(control);
  const label = labelOf(control, type, names) || (isTextField(control) ? textBefore(control) : "");
  const state = stateOf(control, type, names, secrets);
  return [
    kindWord(control, type), ...(label ? [quoted(label)] : []), ...valueWords(control, type, state, secrets),
    ...suggestionWords(control), ...hintWords(control, label, state), ...stateWords(control, state),
    ...(state.href ? [`→ ${shorten(state.href, LINE_ADDRESS_LIMIT)}`] : []),
  ].join(" ");
};
