// The usable elements of the page: controls and links, sorted by position, with label, bounds and state.
const USABLE_WITHOUT_ROLE = [
  "a[href]", "area[href]", "button", "input:not([type=hidden])", "select", "textarea", "summary", "[onclick]:not(form)",
  "[contenteditable='']", "[contenteditable=true i]", "[contenteditable=plaintext-only i]", "audio[controls]", "video[controls]",
].join(",");
const USABLE = `${USABLE_WITHOUT_ROLE},[role]:not(form)`;
const USABLE_ROLES = new Set([
  "button", "link", "checkbox", "radio", "switch", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "option",
  "treeitem", "combobox", "listbox", "textbox", "searchbox", "slider", "spinbutton",
]);
const INPUT_TYPES = { text: "textbox", search: "searchbox", range: "slider", submit: "button", reset: "button", image: "button" };
const LABEL_LIMIT = 120;
const VALUE_LIMIT = 200;
const OPTIONS_LIMIT = 20;

// Every accessible root: the document, shadow roots, documents of same-origin frames. `x` and `y` are the position of the
// root's viewport in the outermost page.
const findRoots = (root, x = window.scrollX, y = window.scrollY, found = []) => {
  found.push({ root, x, y });
  const elements = all(root, ":not(form)"); // a form has no shadow root, and its fields may shadow its properties
  for (let index = 0; index < elements.length; index += 1) {
    const shadow = elements[index].shadowRoot ?? CLOSED?.get(elements[index]);
    if (shadow) findRoots(shadow, x, y, found);
  }
  for (const frame of all(root, "iframe,frame")) {
    const inner = innerDocument(frame);
    if (!inner || !bodyOf(inner)) continue;
    const box = boxOf(frame);
    findRoots(inner, x + box.x + frame.clientLeft, y + box.y + frame.clientTop, found);
  }
  return found;
};

const firstWord = (text) => text.trim().split(/\s+/)[0].toLowerCase();
const typeOfElement = (element) => {
  const role = attr(element, "role");
  if (role) return firstWord(role);
  const tag = tagOf(element);
  if (tag === "a" || tag === "area") return "link";
  if (tag === "input") return INPUT_TYPES[element.type] ?? element.type;
  if (tag === "select") return element.multiple || element.size > 1 ? "listbox" : "combobox";
  if (tag === "textarea") return "textbox";
  if (tag === "summary") return "disclosure";
  if (own(element, "isContentEditable")) return "textbox";
  return ["button", "audio", "video"].includes(tag) ? tag : "clickable";
};

const TEXT_IS_VALUE = new Set(["textbox", "searchbox", "combobox", "listbox"]);
const labelText = (text) => shorten(collapse(text ?? "").trim(), LABEL_LIMIT);
// A label may contain its field, whose options or content are not part of its name.
const labelWords = (label) => lineOfText(label, LABEL_LIMIT) || rawText(label);
const labelOf = (element, type, names) => {
  if (type === "link" && !names.some((name) => name.startsWith("aria-"))) {
    const text = lineOfText(element, LABEL_LIMIT);
    if (text) return text;
  }
  const named = fieldLabels(element, labelWords);
  const label = labelText(attr(element, "aria-label")) || labelText(named.join(" "));
  if (label) return label;
  if (tagOf(element) === "input" && type === "button") return labelText(element.value || element.alt || element.type);
  const text = TEXT_IS_VALUE.has(type) ? "" : lineOfText(element, LABEL_LIMIT);
  if (text) return text;
  const inside = all(element, "[aria-label],[title],svg title,img[alt]");
  const fromInside = [...inside].map((node) => attr(node, "aria-label") || attr(node, "title") || attr(node, "alt") || rawText(node));
  return labelText(attr(element, "placeholder")) || labelText(attr(element, "title")) || labelText(fromInside.find(Boolean)) ||
    labelText(attr(element, "alt")) || labelText(attr(element, "name"));
};

const ariaStates = (element, state) => {
  for (const name of ["checked", "selected", "expanded", "pressed"]) {
    const value = attr(element, `aria-${name}`);
    if (value === "true" || value === "false" || value === "mixed") state[name] = value === "mixed" ? value : value === "true";
  }
  for (const name of ["disabled", "required", "readonly", "invalid"]) {
    if (attr(element, `aria-${name}`) === "true") state[name] = true;
  }
  const current = attr(element, "aria-current");
  if (current && current !== "false") state.current = true;
};

const fieldStates = (element, state, type) => {
  if (element.disabled || matches(element, ":disabled")) state.disabled = true;
  if (element.required) state.required = true;
  if (element.readOnly && type !== "checkbox" && type !== "radio") state.readonly = true;
  if (["checkbox", "radio", "switch"].includes(type) && tagOf(element) === "input") {
    state.checked = element.indeterminate ? "mixed" : element.checked;
  }
  if (tagOf(element) !== "select") return;
  const options = [...element.options];
  state.options = options.slice(0, OPTIONS_LIMIT).map((option) => shorten(collapse(option.label).trim(), 60));
  if (options.length > OPTIONS_LIMIT) state.moreOptions = options.length - OPTIONS_LIMIT;
};

const HAS_NO_VALUE = new Set(["checkbox", "radio", "button", "switch"]);
const valueState = (element, type, secrets) => {
  if (!matches(element, FIELDS) || HAS_NO_VALUE.has(type)) return {};
  const chosen = tagOf(element) === "select" ? [...element.selectedOptions].map((option) => option.label).join(", ") : null;
  const value = chosen ?? fieldValue(element);
  if (!value) return {};
  if (secrets.fields.has(element)) return { value: MASK };
  return { value: type === "file" ? value.split("\\").pop() : shorten(collapse(value).trim(), VALUE_LIMIT) };
};

const linkStates = (element, state) => {
  const href = linkAddress(element);
  if (href && href.length <= 500) state.href = href;
};

const stateOf = (element, type, names, secrets) => {
  const state = {};
  const tag = tagOf(element);
  if (names.some((name) => name.startsWith("aria-"))) ariaStates(element, state);
  if (tag === "a" || tag === "area") linkStates(element, state);
  else fieldStates(element, state, type);
  if (type === "disclosure") state.expanded = hasAttr(element.parentElement ?? element, "open");
  if (secrets.fields.has(element) && state.options) delete state.options;
  return type === "link" ? state : Object.assign(state, valueState(element, type, secrets));
};

// An element keeps its id while the document exists; ids are stored in the isolated world, not on the page.
const ids = (globalThis.continuityIds ??= { next: 1, of: new WeakMap() });
const idOf = (element) => {
  if (!ids.of.has(element)) ids.of.set(element, `e${ids.next++}`);
  return ids.of.get(element);
};

// An element that has only a role is usable only with certain roles.
const hasIdleRole = (element) => {
  const role = attr(element, "role");
  if (role === null || USABLE_ROLES.has(firstWord(role))) return false;
  return !matches(element, USABLE_WITHOUT_ROLE);
};

// A wrapper with onclick around real controls, or an element inside a link, would be listed twice.
const NATIVE = new Set(["a", "area", "button", "input", "select", "textarea", "summary"]);
const isRepeated = (element) => {
  if (NATIVE.has(tagOf(element))) return false;
  if (closest(element, "a[href],button") !== null) return true;
  return hasAttr(element, "onclick") && !hasAttr(element, "role") && one(element, "a[href],button,input,select,textarea") !== null;
};

// The bounds of an element on the page; null if it has no area there.
const boundsOf = (element, x, y) => {
  const box = boxOf(element);
  const { width, height } = box;
  if (width < 1 || height < 1) return null;
  const bounds = { x: Math.round(box.x + x), y: Math.round(box.y + y), width: Math.round(width), height: Math.round(height) };
  return bounds.x + width <= 0 || bounds.y + height <= 0 ? null : bounds;
};

const INERT = "[aria-hidden=true],[inert]";
const boxesOf = (roots, selector = USABLE, isWanted = () => true) => {
  const found = [];
  for (const { root, x, y } of roots) {
    const someInert = one(root, INERT) !== null;
    const elements = all(root, selector);
    for (let index = 0; index < elements.length; index += 1) {
      const element = elements[index];
      const bounds = boundsOf(element, x, y);
      if (bounds === null || !visible(element) || hasIdleRole(element) || isRepeated(element) || !isWanted(element)) continue;
      if (someInert && closest(element, INERT) !== null) continue;
      found.push({ element, bounds });
    }
  }
  return found.sort((a, b) => a.bounds.y - b.bounds.y || a.bounds.x - b.bounds.x);
};

const describe = ({ element, bounds }, secrets) => {
  const type = typeOfElement(element);
  const names = attributeNames(element);
  const label = labelOf(element, type, names);
  return { id: idOf(element), type, label, bounds, state: stateOf(element, type, names, secrets) };
};
