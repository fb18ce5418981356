// The commands that Python calls, and those that set a value without the keyboard: options, and fields whose keys depend
// on the browser's language (dates, colours, sliders). Other fields are filled with real keyboard input.
const SET_TYPES = new Set(["date", "time", "datetime-local", "month", "week", "color", "range"]);
const YES = new Set(["true", "on", "yes", "y", "1", "checked", "selected", "是", "对", "选中", "勾选", "开", "同意"]);
const NO = new Set(["false", "off", "no", "n", "0", "unchecked", "", "否", "不", "不选", "取消勾选", "关"]);
const MAX_OPTIONS_LISTED = 50;

const target = () => globalThis.continuityTarget;
const inputWay = (element) => {
  const tag = tagOf(element);
  if (tag === "select") return "choice";
  const type = typeOfElement(element);
  if (type === "radio") return "radio";
  if (TOGGLES.has(type)) return "toggle";
  if (tag === "input") return SET_TYPES.has(element.type) ? "set" : "text";
  if (tag === "textarea") return "text";
  return element.isContentEditable ? "rich" : "none";
};
const fieldInfo = (element) => {
  if (!isFillable(element)) return { way: "none", isSecret: false };
  return { way: inputWay(element), isSecret: matches(element, FIELDS) && isSecretField(element) };
};

const isChecked = (element) =>
  tagOf(element) === "input" ? element.checked : attr(element, "aria-checked") === "true";

const focus = () => {
  const element = target();
  element.focus({ preventScroll: true });
  globalThis.continuityField = new WeakRef(element);
  if (isNativeField(element)) element.select?.();
  else viewOf(documentOf(element)).getSelection().selectAllChildren(element);
  return { isFocused: rootNodeOf(element).activeElement === element };
};

const dispatchChange = (element) => {
  dispatch(element, new Event("input", { bubbles: true, composed: true }));
  dispatch(element, new Event("change", { bubbles: true }));
};

// An invalid date would empty the field.
const acceptsValue = (element, value) => {
  if (inputWay(element) !== "set") return true;
  const trial = element.cloneNode();
  trial.value = value;
  return trial.value !== "";
};
const setValue = (value) => {
  const element = target();
  if (value && !acceptsValue(element, value)) return { value: "" };
  globalThis.continuityField = new WeakRef(element);
  element.focus({ preventScroll: true });
  element.value = value;
  dispatchChange(element);
  return { value: element.value };
};

const exactOption = (options, value) =>
  options.find(({ key }) => key === value) ?? options.find(({ label }) => fold(label) === fold(value)) ?? null;
const bestOption = (options, value) => {
  const exact = exactOption(options, value);
  if (exact) return exact;
  const wanted = wordsOf(value);
  const fits = options.map((option) => ({ option, score: similarity(wanted, wordsOf(option.label)) }));
  const best = fits.reduce((one_, other) => (other.score > one_.score ? other : one_), { score: 0, option: null });
  return best.score >= 0.6 ? best.option : null;
};

const usableOptions = (element) => [...element.options].filter((option) => !option.disabled && !matches(option, "optgroup:disabled *"))
  .map((option) => ({ option, key: option.value, label: collapse(option.label).trim() }));
const listed = (options) => options.slice(0, MAX_OPTIONS_LISTED).map(({ label }) => shorten(label, 60));
const chooseOption = (value) => {
  const element = target();
  const options = usableOptions(element);
  const found = bestOption(options, value);
  if (!found) return { missing: listed(options) };
  globalThis.continuityField = new WeakRef(element);
  element.focus({ preventScroll: true });
  if (element.multiple) for (const option of element.options) option.selected = option === found.option;
  else element.selectedIndex = found.option.index;
  dispatchChange(element);
  return { value: found.label };
};

// Select these options, given by value or label, and deselect all others. Nothing changes if one of them does not exist.
const selectOptions = (wanted) => {
  const element = target();
  if (tagOf(element) !== "select") return { problem: "not_a_select" };
  if (!element.multiple && wanted.length !== 1) return { problem: "one_option" };
  const options = usableOptions(element);
  const found = wanted.map((value) => exactOption(options, value));
  if (found.includes(null)) return { missing: listed(options) };
  globalThis.continuityField = new WeakRef(element);
  element.focus({ preventScroll: true });
  const chosen = new Set(found.map(({ option }) => option));
  if (element.multiple) for (const { option } of options) option.selected = chosen.has(option);
  else element.selectedIndex = found[0].option.index;
  dispatchChange(element);
  return { selected: [...element.selectedOptions].map((option) => shorten(collapse(option.label).trim(), 200)) };
};

// Return whether a checkbox or radio button must be clicked to have the value. A radio button may be given as one of its group's
// options, which then becomes the target.
const needsClick = (value) => {
  const element = target();
  const folded = fold(value);
  if (inputWay(element) === "toggle" || YES.has(folded)) {
    if (!YES.has(folded) && !NO.has(folded)) return { missing: ["true", "false"] };
    return { needsClick: isChecked(element) !== YES.has(folded), before: String(isChecked(element)) };
  }
  const group = tagOf(element) === "input" && element.name
    ? [...all(element.form ?? rootNodeOf(element), "input[type=radio]")].filter((radio) => radio.name === element.name)
    : [element];
  const options = group.filter((radio) => !matches(radio, ":disabled")).map((radio) =>
    ({ option: radio, key: radio.value ?? "", label: labelOf(radio, "radio", attributeNames(radio)) }));
  const found = bestOption(options, value);
  if (!found) return { missing: options.slice(0, MAX_OPTIONS_LISTED).map(({ label }) => shorten(label, 60)) };
  globalThis.continuityTarget = found.option;
  return { needsClick: !isChecked(found.option), before: "false" };
};

const reachTarget = async () => {
  const clickTarget = clickTargetOf(target());
  const point = await clickPointOf(clickTarget);
  if (!point.reason) guard(clickTarget);
  return point;
};

const shownValue = () => {
  const element = target();
  const way = inputWay(element);
  if (way === "toggle" || way === "radio") return { value: String(isChecked(element)) };
  return { value: isNativeField(element) ? element.value : rawText(element) };
};

// Fields that the page or the browser marks as wrong after a submit, with their messages.
const refusedFields = () => ({
  refused: findRoots(document).flatMap(({ root }) => [...all(root, "[aria-invalid=true],:user-invalid")])
    .filter((element) => visible(element) && matches(element, FIELD)).slice(0, 20)
    .map((element) => {
      const named = (attr(element, "aria-errormessage") ?? attr(element, "aria-describedby") ?? "").split(/\s+/).filter(Boolean);
      const notes = named.map((id) => rootNodeOf(element).getElementById?.(id)).filter(Boolean).map((note) => lineOfText(note, 200));
      return { field: describeElement(element).label, says: notes.join(" ").trim() || element.validationMessage || "" };
    }),
});

const hashOf = (content) => {
  let [high, low] = [0xdeadbeef, 0x41c6ce57];
  for (let at = 0; at < content.length; at += 1) {
    const code = content.charCodeAt(at);
    high = Math.imul(high ^ code, 2654435761);
    low = Math.imul(low ^ code, 1597334677);
  }
  return `${(high >>> 0).toString(16)}-${(low >>> 0).toString(16)}-${content.length}`;
};

// Texts that are nothing but a time with seconds. If there are more than a few, they belong to what the page lists.
const TIME_WORDS = /\b(am|pm|utc|gmt|cest|cet|(mon|tues?|wed(nes)?|thu(rs)?|fri|sat(ur)?|sun)(day)?|(jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*)\b/gi;
const MAX_TIMES = 2;
const timesShown = () => {
  const times = [...piecesShown().values()].filter((text) => /\d:\d\d:\d\d/.test(text) && /^[\d\s:.,+/()TZ-]*$/.test(text.replace(TIME_WORDS, "")));
  return times.length <= MAX_TIMES ? times : [];
};

// A hash of the page's text and links, without its clocks.
const fingerprint = () => {
  const content = findRoots(document).map(({ root }) => {
    // Links to this page with other parameters are ignored: they differ even if the page after the last one repeats it.
    const links = [...all(root, "a[href],img[src]")].map((node) => URL.parse(attr(node, "href") ?? attr(node, "src"), location.href))
      .filter((address) => address && address.pathname !== location.pathname).map((address) => address.href).join(" ");
    const body = nodeKind(root) === DOCUMENT ? bodyOf(root) : null;
    return `${body ? body.innerText : rawText(root)} ${links}`;
  }).join(" ");
  return { fingerprint: hashOf(timesShown().reduce((text, time) => text.replace(time, ""), content)) };
};

const busy = () => ({ busy: isBusy() });

const COMMANDS = {
  index, observe, markup, domClick, domType, domEnter, fingerprint, locate, pressReady, pointReady, pressReport, clickOutcome, focus, setValue, chooseOption, needsClick, reachTarget, shownValue, refusedFields, shownForm,
  scroll, findText, waitForText, shownState, shownChange, watchTexts, busy, drawNumbers, eraseNumbers, selectOptions, hoverPoint, isHovered, focusForKeys, keysReady, dragDestination,
  judge, expectAt, expectedChange, dropPoint, watchDrag, pressOutcome, htmlDrag, dragOutcome, domHover, domKey, domDrag,
};
// Commands for the located element. If the document was replaced since, there is none.
const NEEDS_TARGET = new Set([
  "domClick", "domType", "domEnter", "focus", "setValue", "chooseOption", "needsClick", "reachTarget", "shownValue",
  "selectOptions", "hoverPoint", "isHovered", "watchDrag", "dropPoint", "pressReady", "pressOutcome", "htmlDrag", "dragOutcome", "domHover", "domKey", "domDrag",
]);
const runCommand = async ({ command, args }) =>
  NEEDS_TARGET.has(command) && !target() ? '{"isStale":true}' : JSON.stringify(await COMMANDS[command](args)).replace(/\\u0000/g, "");
