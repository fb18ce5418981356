// Put a value into the field that was aimed at. What a keyboard can do is done by a keyboard, from outside; here is what
// it cannot: options, and fields whose keys depend on the browser's language (dates, colours, sliders).
const SET_TYPES = new Set(["date", "time", "datetime-local", "month", "week", "color", "range"]);
const YES = new Set(["true", "on", "yes", "y", "1", "checked", "selected", "是", "对", "选中", "勾选", "开", "同意"]);
const NO = new Set(["false", "off", "no", "n", "0", "unchecked", "", "否", "不", "不选", "取消勾选", "关"]);
const OPTIONS_TOLD = 50;

const target = () => globalThis.continuityTarget;
const waysOf = (element) => {
  const tag = tagOf(element);
  if (tag === "select") return "choice";
  const type = typeOfElement(element);
  if (type === "radio") return "radio";
  if (TOGGLES.has(type)) return "toggle";
  if (tag === "input") return SET_TYPES.has(element.type) ? "set" : "text";
  if (tag === "textarea") return "text";
  return element.isContentEditable ? "rich" : "none";
};
const fieldOf = (element) => {
  if (!AS_FIELD(element)) return { way: "none", isSecret: false };
  return { way: waysOf(element), isSecret: matches(element, FIELDS) && isSecretField(element) };
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

const tellPage = (element) => {
  dispatch(element, new Event("input", { bubbles: true, composed: true }));
  dispatch(element, new Event("change", { bubbles: true }));
};

// Dates that are none would empty a field.
const takes = (element, value) => {
  if (waysOf(element) !== "set") return true;
  const trial = element.cloneNode();
  trial.value = value;
  return trial.value !== "";
};
const setValue = (value) => {
  const element = target();
  if (value && !takes(element, value)) return { value: "" };
  globalThis.continuityField = new WeakRef(element);
  element.focus({ preventScroll: true });
  element.value = value;
  tellPage(element);
  return { value: element.value };
};

const bestOption = (options, value) => {
  const wanted = wordsOf(value);
  const exact = options.find(({ key }) => key === value) ?? options.find(({ label }) => fold(label) === wanted.folded);
  if (exact) return exact;
  const fits = options.map((option) => ({ option, score: similarity(wanted, wordsOf(option.label)) }));
  const best = fits.reduce((one_, other) => (other.score > one_.score ? other : one_), { score: 0, option: null });
  return best.score >= 0.6 ? best.option : null;
};

const choose = (value) => {
  const element = target();
  const options = [...element.options].filter((option) => !option.disabled && !matches(option, "optgroup:disabled *"))
    .map((option) => ({ option, key: option.value, label: collapse(option.label).trim() }));
  const found = bestOption(options, value);
  if (!found) return { missing: options.slice(0, OPTIONS_TOLD).map(({ label }) => shorten(label, 60)) };
  globalThis.continuityField = new WeakRef(element);
  element.focus({ preventScroll: true });
  if (element.multiple) for (const option of element.options) option.selected = option === found.option;
  else element.selectedIndex = found.option.index;
  tellPage(element);
  return { value: found.label };
};

// Whether a box must be pressed to have the value; a radio button may be named by its group's option.
const mustPress = (value) => {
  const element = target();
  const said = fold(value);
  if (waysOf(element) === "toggle" || YES.has(said)) {
    if (!YES.has(said) && !NO.has(said)) return { missing: ["true", "false"] };
    return { press: isChecked(element) !== YES.has(said), was: String(isChecked(element)) };
  }
  const group = tagOf(element) === "input" && element.name
    ? [...all(element.form ?? rootNodeOf(element), "input[type=radio]")].filter((radio) => radio.name === element.name)
    : [element];
  const options = group.filter((radio) => !matches(radio, ":disabled")).map((radio) =>
    ({ option: radio, key: radio.value ?? "", label: labelOf(radio, "radio", attributeNames(radio)) }));
  const found = bestOption(options, value);
  if (!found) return { missing: options.slice(0, OPTIONS_TOLD).map(({ label }) => shorten(label, 60)) };
  globalThis.continuityTarget = found.option;
  return { press: !isChecked(found.option), was: "false" };
};

const reachTarget = async () => {
  const element = target();
  const hand = visible(element) && boxOf(element).width >= 1 ? element : (labelShown(element) ?? element);
  const place = await reachable(hand);
  if (!place.reason) guard(hand);
  return place;
};

const shownValue = () => {
  const element = target();
  const way = waysOf(element);
  if (way === "toggle" || way === "radio") return { value: String(isChecked(element)) };
  return { value: isNativeField(element) ? element.value : rawText(element) };
};

// Fields that the page, or the browser, marks as wrong after a submit, with what it says about each.
const refusedFields = () => ({
  refused: findRoots(document).flatMap(({ root }) => [...all(root, "[aria-invalid=true],:user-invalid")])
    .filter((element) => visible(element) && matches(element, FIELD)).slice(0, 20)
    .map((element) => {
      const named = (attr(element, "aria-errormessage") ?? attr(element, "aria-describedby") ?? "").split(/\s+/).filter(Boolean);
      const notes = named.map((id) => rootNodeOf(element).getElementById?.(id)).filter(Boolean).map((note) => lineOfText(note, 200));
      return { field: told(element).label, says: notes.join(" ").trim() || element.validationMessage || "" };
    }),
});

// One short text for all that the page says and where it leads: the same page gives the same.
const fingerprint = () => {
  const said = findRoots(document).map(({ root }) => {
    // Links to the same page with other numbers differ also where the page beyond the last one repeats.
    const links = [...all(root, "a[href],img[src]")].map((node) => URL.parse(attr(node, "href") ?? attr(node, "src"), location.href))
      .filter((address) => address && address.pathname !== location.pathname).map((address) => address.href).join(" ");
    const body = nodeKind(root) === DOCUMENT ? bodyOf(root) : null;
    return `${body ? body.innerText : rawText(root)} ${links}`;
  }).join(" ");
  let [high, low] = [0xdeadbeef, 0x41c6ce57];
  for (let at = 0; at < said.length; at += 1) {
    const code = said.charCodeAt(at);
    high = Math.imul(high ^ code, 2654435761);
    low = Math.imul(low ^ code, 1597334677);
  }
  return { fingerprint: `${(high >>> 0).toString(16)}-${(low >>> 0).toString(16)}-${said.length}` };
};

const COMMANDS = {
  index, markup, domClick, domWrite, domEnter, fingerprint, aim, pressed: () => ({ press: pressed() }), focus, setValue, choose, mustPress, reachTarget, shownValue, refusedFields,
};
// What is done to the element that was aimed at; in another document than that was in there is none.
const TO_TARGET = new Set([
  "domClick", "domWrite", "domEnter", "focus", "setValue", "choose", "mustPress", "reachTarget", "shownValue",
]);
const runCommand = async ({ command, args }) =>
  TO_TARGET.has(command) && !target() ? '{"isStale":true}' : JSON.stringify(await COMMANDS[command](args)).replace(/\\u0000/g, "");
