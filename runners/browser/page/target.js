// Scroll the located element into view, find a point where a click hits it, and block clicks that hit anything else.
const MAX_POSITION_CHECKS = 12;
const scrollTo = method(Element.prototype, "scrollIntoView");
// Convert points between a frame's document and the document around it; frames may be scaled.
const scaleOf = (frame) => {
  const { width, height } = boxOf(frame);
  return [frame.offsetWidth ? width / frame.offsetWidth : 1, frame.offsetHeight ? height / frame.offsetHeight : 1];
};
const edgesOf = (frame) => {
  const { paddingLeft, paddingTop } = getComputedStyle(frame);
  return [frame.clientLeft + parseFloat(paddingLeft), frame.clientTop + parseFloat(paddingTop)];
};
const outOf = (frame, { x, y }) => {
  const [box, [across, down], [left, top]] = [boxOf(frame), scaleOf(frame), edgesOf(frame)];
  return { x: box.x + (left + x) * across, y: box.y + (top + y) * down };
};
const into = (frame, { x, y }) => {
  const [box, [across, down], [left, top]] = [boxOf(frame), scaleOf(frame), edgesOf(frame)];
  return { x: (x - box.x) / across - left, y: (y - box.y) / down - top };
};
const frameAround = (element) => viewOf(documentOf(element))?.frameElement;
// Convert a point of an element's document to the outermost document.
const inTop = (element, point) => {
  for (let frame = frameAround(element); frame; frame = frameAround(frame)) point = outOf(frame, point);
  return point;
};

const deepestAt = (x, y) => {
  let root = document;
  let found = null;
  for (;;) {
    const hit = root.elementFromPoint(x, y);
    if (!hit || hit === found) return found;
    found = hit;
    const inner = innerDocument(hit);
    if (inner) ({ x, y } = into(hit, { x, y }));
    root = inner ?? shadowOf(hit);
    if (!root) return found;
  }
};

const ACTIVATES_CONTENT = "a[href],button,label,summary";
const renderedAround = (node) => {
  const slot = nodeKind(node) === ELEMENT ? slotOf(node) : null;
  return slot ?? parentOf(node) ?? (nodeKind(node) === FRAGMENT ? hostOf(node) : null);
};
// Return whether a click that hits `hit` activates `target`.
const activates = (target, hit) => {
  for (let node = hit; node; node = renderedAround(node)) {
    if (node === target) return true;
    if (nodeKind(node) === ELEMENT && tagOf(node) === "label" && node.control === target) return true;
  }
  return nodeKind(hit) === ELEMENT && matches(hit, ACTIVATES_CONTENT) && isAround(hit, target);
};

const pointsOf = (element) => {
  const rects = [...rectsOf(element)].sort((a, b) => b.width * b.height - a.width * a.height);
  const rect = rects[0] ?? boxOf(element);
  return [[0.5, 0.5], [0.25, 0.5], [0.75, 0.5], [0.5, 0.25], [0.5, 0.75]].map(([across, down]) =>
    ({ x: rect.x + rect.width * across, y: rect.y + rect.height * down }));
};

const stopsMoving = async (element) => {
  let last = boxOf(element);
  for (let check = 0; check < MAX_POSITION_CHECKS; check += 1) {
    await sleep(20);
    const box = boxOf(element);
    if (box.x === last.x && box.y === last.y && box.width === last.width && box.height === last.height) return true;
    last = box;
  }
  return false;
};

// A frame whose document is of another origin: it gets no input.
const isForeignFrame = (element) => {
  const tag = tagOf(element);
  if (tag in FRAME_DOCUMENT) return innerDocument(element) === null;
  return tag === "embed" || tag === "fencedframe" || (tag === "object" && element.contentWindow !== null);
};
const clickPointOf = async (target) => {
  if (isForeignFrame(target)) return { reason: "other_origin" };
  scrollTo(target, { block: "center", inline: "center", behavior: "instant" });
  if (!(await stopsMoving(target))) return { reason: "moving" };
  let over = null;
  for (const point of pointsOf(target)) {
    const { x, y } = inTop(target, point);
    const hit = deepestAt(x, y);
    if (hit && activates(target, hit)) return { x, y };
    over ??= hit;
  }
  if (!over) return { reason: "outside" };
  return { reason: "covered", coveredBy: shorten(`${tagOf(over)} ${lineOfText(over, 80)}`.trim(), 100) };
};

// Make links and forms that would open a new tab open in this one, because a run has one page.
const openInSameTab = (element) => {
  for (const holder of [closest(element, "a[target],area[target]"), own(element, "form"), closest(element, "form[target]")]) {
    if (holder && hasAttr(holder, "target")) setAttr(holder, "target", "_self");
  }
  if (hasAttr(element, "formtarget")) setAttr(element, "formtarget", "_self");
};

// The closed shadow roots around an element: outside of them, events do not reveal what was hit inside.
const closedRootsAround = (element) => {
  const found = [];
  for (let root = rootNodeOf(element); nodeKind(root) === FRAGMENT; root = rootNodeOf(hostOf(root))) if (root.mode === "closed") found.push(root);
  return found;
};

const MAX_CLICK_MS = 15_000;
const LONGEST_FRAME_MS = 100; // a page that is not shown draws no frames
const CLICK_EVENTS = ["pointerdown", "mousedown", "pointerup", "mouseup", "click"];
const PRESSES = new Set(["pointerdown", "mousedown"]);
// Until the click is over, block it for anything but the target, because elements may move under the mouse. The press has to
// hit the target, and so has the click, unless the page has replaced the target by then.
const guard = (target) => {
  const state = { target, hit: null, isClicked: false, changed: null };
  const closedRoots = closedRootsAround(target);
  const isAllowed = (event, hit) => {
    if (PRESSES.has(event.type) && state.hit === null) {
      state.hit = activates(target, hit) && changeOfExpected() === null;
      globalThis.continuityReport?.(state.hit);
    }
    if (!state.hit || event.type !== "click") return Boolean(state.hit);
    state.changed ??= changeOfExpected(); // by what the page did since the press
    if (state.changed) return false;
    state.isClicked ||= activates(target, hit) || !isHere(target);
    return state.isClicked;
  };
  state.check = (event) => {
    const hit = event.composedPath()[0];
    if (!event.isTrusted || closedRoots.some((root) => hostOf(root) === hit)) return; // the listener in that root sees what was hit
    if (isAllowed(event, hit)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  const windows = new Set([window, viewOf(documentOf(target))]);
  const views = [...windows, ...closedRoots];
  for (const view of views) for (const type of CLICK_EVENTS) listen(view, type, state.check, { capture: true, passive: false });
  state.end = () => {
    for (const view of views) for (const type of CLICK_EVENTS) unlisten(view, type, state.check, { capture: true });
    for (const view of windows) if (view.continuityGuard === state) view.continuityGuard = null;
  };
  globalThis.continuityGuard?.end();
  for (const view of windows) view.continuityGuard = state; // for the listeners of first_listeners.js
  sleep(MAX_CLICK_MS).then(() => state.end()); // if clickOutcome is never called, unblock other clicks
};

const nextFrame = () => new Promise((resolve) => {
  requestAnimationFrame(() => setTimeout(resolve, 0));
  sleep(LONGEST_FRAME_MS).then(resolve);
});
// After the mouse has moved to a point, and the page has drawn what that changed: whether a press there hits the target.
const pressReady = async ({ x, y }) => {
  await nextFrame();
  const state = globalThis.continuityGuard;
  const hit = deepestAt(x, y);
  return { isReady: Boolean(state && hit) && !isForeignFrame(hit) && activates(state.target, hit) && changeOfExpected() === null };
};
// The same for a click at a point: what is there becomes the target, if it is the element that the click was judged by.
const pointReady = async ({ x, y }) => {
  await nextFrame();
  const hit = deepestAt(x, y);
  if (!hit) return { reason: "outside" };
  if (isForeignFrame(hit)) return { reason: "other_origin" };
  const judged = globalThis.continuityJudgedPoint ?? null;
  if (judged && (!isHere(judged) || !activates(judged, hit) || changeOfExpected() !== null)) return { isReady: false };
  globalThis.continuityTarget = judged ?? hit;
  guard(judged ?? hit);
  return { isReady: true };
};
// What the press hit: "hit", "missed", or "unseen" if no press arrived in a document of this origin.
const pressOutcome = () => {
  const hit = globalThis.continuityGuard?.hit ?? null;
  return { outcome: hit === null ? "unseen" : hit ? "hit" : "missed" };
};
// The same, once there was a press, or the watching ends: the answer is sent before a page that is pressed can navigate.
const pressReport = async () => {
  await new Promise((resolve) => (globalThis.continuityReport = resolve));
  return pressOutcome();
};
// What the click hit: as pressOutcome, or "diverted" if the press hit the target and the release something else.
const clickOutcome = () => {
  const state = globalThis.continuityGuard;
  const { outcome } = pressOutcome();
  globalThis.continuityReport?.(null);
  globalThis.continuityJudgedPoint = null;
  state?.end();
  if (state?.changed) return { outcome: "changed", changed: state.changed };
  return { outcome: outcome === "hit" && !state.isClicked ? "diverted" : outcome };
};

const describeElement = (element) => ({ type: typeOfElement(element), label: labelOf(element, typeOfElement(element), attributeNames(element)) });

const isSubmit = (element) => matches(element, "button:not([type=button]):not([type=reset]),input[type=submit],input[type=image]");
const deepActiveElement = () => {
  let active = document.activeElement;
  while (active && (shadowOf(active)?.activeElement || innerDocument(active)?.activeElement)) {
    active = shadowOf(active)?.activeElement ?? innerDocument(active).activeElement;
  }
  return active;
};
// The field that was filled last.
const lastField = () => {
  const active = deepActiveElement();
  return active && isFillable(active) ? active : (globalThis.continuityField?.deref() ?? null);
};
// What submits the form that was filled last: its first submit button, else the Enter key.
const defaultSubmit = () => {
  const field = lastField();
  const forms = findRoots(document).flatMap(({ root }) => [...all(root, "form")]).filter(visible);
  const form = field?.form ?? (field ? null : forms.length === 1 ? forms[0] : null);
  const buttons = form ? [...form.elements, ...all(form, "input[type=image]")].filter(isSubmit) : [];
  const usable = buttons.find((button) => !hindrance(button, "clickable"));
  if (usable) return { chosen: { element: usable, score: 1, by: "role", matched: "submit" }, equals: 1 };
  if (buttons.length) return { chosen: null, reason: hindrance(buttons[0], "clickable"), candidates: buttons.slice(0, MAX_CANDIDATES).map((element) => ({ ...describeElement(element), hindrance: hindrance(element, "clickable") })) };
  if (field) return { chosen: { element: field, score: 1, by: "role", matched: "enter" }, equals: 1, key: "Enter" };
  return { chosen: null, reason: "no_form", candidates: [] };
};

// The button that starts a search, beside a field that Enter does not submit: its name means search, it is in no other form
// and in no menu, it follows no link, and of several it is the nearest to the field that was filled last.
const BUTTONS = "button,[role=button],input[type=button],input[type=submit],input[type=image],a:not([href]),a[href='#'],a[href^='javascript:' i]";
const SEARCH_SIGNS = /[\u{1F50D}\u{1F50E}⌕]/u;
const SEARCH_NAMES = /\b(go|ok|los|suche|suchen|chercher|rechercher|buscar|cerca|zoek|pesquisar|поиск|найти)\b|検索|검색/iu;
const OTHER_NAMES = /\b(advanced|clear|close|cancel|reset|history|settings?|options?|filters?|help|tips|voice|image|camera|save|delete|remove)\b|高级|清空|清除|关闭|取消|重置|历史|设置|筛选|帮助|语音|图片|保存|删除/iu;
const MAX_SEARCH_WORDS = 4;
const MAX_SEARCH_DISTANCE = 400; // CSS pixels between the edges

// 2 for a name that only means search, 1 for one that also names what is searched, 0 for any other.
const meansSearch = (element) => {
  const { label, name, text, attribute } = propertiesOf(element);
  const shown = collapse(name || text || label || "").trim();
  const words = shown ? shown : `${attribute} ${(attr(element, "class") ?? "").replace(/[_\-]+/g, " ")}`;
  if (OTHER_NAMES.test(words)) return 0;
  if (SEARCH_SIGNS.test(shown)) return 2;
  const { folded, tokens } = wordsOf(words);
  if (!tokens.includes("search") && !(SEARCH_NAMES.test(folded) && tokens.length <= 1)) return 0;
  if (!shown) return 1;
  return tokens.length === 1 ? 2 : tokens.length <= MAX_SEARCH_WORDS ? 1 : 0;
};
const distanceOf = (one_, other) => {
  const [a, b] = [boxOf(one_), boxOf(other)];
  return Math.hypot(Math.max(0, a.left - b.right, b.left - a.right), Math.max(0, a.top - b.bottom, b.top - a.bottom));
};
const searchButtons = () => {
  const field = lastField();
  if (!field) return [];
  const form = closest(field, "form");
  const isBeside = (element) => {
    const menu = closest(element, MENUS);
    return (own(element, "form") ?? closest(element, "form") ?? form) === form && (menu === null || isAround(menu, field));
  };
  return [...all(rootNodeOf(field), BUTTONS)]
    .filter((element) => element !== field && isBeside(element) && distanceOf(element, field) <= MAX_SEARCH_DISTANCE && !hindrance(element, "clickable"))
    .map((element) => ({ element, rank: meansSearch(element) })).filter(({ rank }) => rank > 0)
    .sort((a, b) => b.rank - a.rank || distanceOf(a.element, field) - distanceOf(b.element, field))
    .map(({ element }) => element);
};

// A hidden checkbox or radio button is clicked through its visible label.
const clickTargetOf = (element) =>
  visible(element) && boxOf(element).width >= 1 ? element : (visibleLabel(element) ?? element);

const attempt = async ({ locator, purpose, isGuarded, isSubmit, expected = null }) => {
  const found = locator ? search(locator, purpose, isSubmit) : defaultSubmit();
  if (!found.chosen) return { outcome: "missing", reason: found.reason, candidates: found.candidates, isFinal: found.isFinal };
  const { element, score, by, matched } = found.chosen;
  const changed = differenceFrom(locator, expected, element) ?? changeOfExpected(true);
  if (changed) return { outcome: "changed", changed, isFinal: true };
  const match = { ...describeElement(element), score, by, matched, equals: found.equals };
  const clickTarget = clickTargetOf(element);
  const point = purpose === "any" ? {} : await clickPointOf(clickTarget);
  globalThis.continuityTarget = element;
  if (point.reason && isGuarded) return { outcome: "missing", ...point, candidates: [match] };
  if (isGuarded && !found.key) {
    openInSameTab(element);
    guard(clickTarget);
  }
  return { outcome: "ready", match, node: nameOfNode(element), x: point.x, y: point.y, key: found.key ?? "", url: location.href, ...fieldInfo(element) };
};

// Search for the element until it is present and usable, or the time is up.
const locate = async (request) => {
  const deadline = now() + request.timeoutMs;
  try {
    for (;;) {
      const answer = await attempt(request);
      if (answer.outcome === "ready" || answer.isFinal || now() >= deadline) return answer;
      await sleep(Math.min(100, Math.max(1, deadline - now())));
    }
  } catch (error) {
    if (error instanceof DOMException && error.name === "SyntaxError") return { outcome: "bad_selector" };
    throw error;
  }
};
