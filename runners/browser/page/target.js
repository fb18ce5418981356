// Bring the element that is meant to where a hand can reach it, and make sure that the hand touches it and nothing else.
const STEADY_LOOKS = 12;
const scrollTo = method(Element.prototype, "scrollIntoView");
// Where a point of a frame's document is in the document around it, and the other way round: frames may be scaled.
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
// Where a point of an element's own document is in the outermost one.
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

const PASSES_ON = "a[href],button,label,summary";
const renderedAround = (node) => {
  const slot = nodeKind(node) === ELEMENT ? slotOf(node) : null;
  return slot ?? parentOf(node) ?? (nodeKind(node) === FRAGMENT ? hostOf(node) : null);
};
// Whether a hand that touches `hit` uses `target`.
const touches = (target, hit) => {
  for (let node = hit; node; node = renderedAround(node)) {
    if (node === target) return true;
    if (nodeKind(node) === ELEMENT && tagOf(node) === "label" && node.control === target) return true;
  }
  return nodeKind(hit) === ELEMENT && matches(hit, PASSES_ON) && isAround(hit, target);
};

const pointsOf = (element) => {
  const rects = [...rectsOf(element)].sort((a, b) => b.width * b.height - a.width * a.height);
  const rect = rects[0] ?? boxOf(element);
  return [[0.5, 0.5], [0.25, 0.5], [0.75, 0.5], [0.5, 0.25], [0.5, 0.75]].map(([across, down]) =>
    ({ x: rect.x + rect.width * across, y: rect.y + rect.height * down }));
};

const atRest = async (element) => {
  let last = boxOf(element);
  for (let look = 0; look < STEADY_LOOKS; look += 1) {
    await sleep(20);
    const box = boxOf(element);
    if (box.x === last.x && box.y === last.y && box.width === last.width && box.height === last.height) return true;
    last = box;
  }
  return false;
};

const reachable = async (target) => {
  scrollTo(target, { block: "center", inline: "center", behavior: "instant" });
  if (!(await atRest(target))) return { reason: "moving" };
  let over = null;
  for (const point of pointsOf(target)) {
    const { x, y } = inTop(target, point);
    const hit = deepestAt(x, y);
    if (hit && touches(target, hit)) return { x, y };
    over ??= hit;
  }
  if (!over) return { reason: "outside" };
  return { reason: "covered", coveredBy: shorten(`${tagOf(over)} ${lineOfText(over, 80)}`.trim(), 100) };
};

// Links and forms that would open a tab of their own open in this one: a run has one page.
const staysHere = (element) => {
  for (const holder of [closest(element, "a[target],area[target]"), own(element, "form"), closest(element, "form[target]")]) {
    if (holder && hasAttr(holder, "target")) setAttr(holder, "target", "_self");
  }
  if (hasAttr(element, "formtarget")) setAttr(element, "formtarget", "_self");
};

// The shadow roots around an element that its page keeps to itself: events do not tell what they hit in there.
const closedAround = (element) => {
  const found = [];
  for (let root = rootNodeOf(element); nodeKind(root) === FRAGMENT; root = rootNodeOf(hostOf(root))) if (root.mode === "closed") found.push(root);
  return found;
};

const LONGEST_PRESS_MS = 15_000;
const PRESSES = ["pointerdown", "mousedown", "pointerup", "mouseup", "click"];
// Until the press is over, keep it from anything but the target: something may move under the hand.
const guard = (target) => {
  const seen = { hit: null };
  const apart = closedAround(target);
  const judge = (event) => {
    const hit = event.composedPath()[0];
    if (!event.isTrusted || apart.some((root) => hostOf(root) === hit)) return; // that root's own listener sees what was hit
    seen.hit ??= touches(target, hit);
    if (seen.hit) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  const views = new Set([window, viewOf(documentOf(target)), ...apart]);
  for (const view of views) for (const press of PRESSES) listen(view, press, judge, { capture: true, passive: false });
  seen.end = () => {
    for (const view of views) for (const press of PRESSES) unlisten(view, press, judge, { capture: true });
  };
  globalThis.continuityGuard?.end();
  globalThis.continuityGuard = seen;
  sleep(LONGEST_PRESS_MS).then(() => seen.end()); // where nobody asks what came of it, others may press again
};

// "hit", "missed", or "unseen" when the page gave no sign of the press.
const pressed = () => {
  const seen = globalThis.continuityGuard;
  globalThis.continuityGuard = null;
  seen?.end();
  return seen?.hit === false ? "missed" : seen?.hit ? "hit" : "unseen";
};

const told = (element) => ({ type: typeOfElement(element), label: labelOf(element, typeOfElement(element), attributeNames(element)) });

const isSubmit = (element) => matches(element, "button:not([type=button]):not([type=reset]),input[type=submit],input[type=image]");
const deepActive = () => {
  let active = document.activeElement;
  while (active && (shadowOf(active)?.activeElement || innerDocument(active)?.activeElement)) {
    active = shadowOf(active)?.activeElement ?? innerDocument(active).activeElement;
  }
  return active;
};
// What submits the form in which the page's reader was writing last: its first button for that, else the Enter key.
const defaultSubmit = () => {
  const active = deepActive();
  const field = active && AS_FIELD(active) ? active : (globalThis.continuityField?.deref() ?? null);
  const forms = findRoots(document).flatMap(({ root }) => [...all(root, "form")]).filter(visible);
  const form = field?.form ?? (field ? null : forms.length === 1 ? forms[0] : null);
  const buttons = form ? [...form.elements, ...all(form, "input[type=image]")].filter(isSubmit) : [];
  const usable = buttons.find((button) => !hindrance(button, "clickable"));
  if (usable) return { chosen: { element: usable, score: 1, by: "role", matched: "submit" }, equals: 1 };
  if (buttons.length) return { chosen: null, reason: hindrance(buttons[0], "clickable"), candidates: buttons.slice(0, CANDIDATES_TOLD).map((element) => ({ ...told(element), hindrance: hindrance(element, "clickable") })) };
  if (field) return { chosen: { element: field, score: 1, by: "role", matched: "enter" }, equals: 1, presses: "Enter" };
  return { chosen: null, reason: "no_form", candidates: [] };
};

const attempt = async ({ locator, purpose, isGuarded }) => {
  const found = locator ? search(locator, purpose) : defaultSubmit();
  if (!found.chosen) return { outcome: "missing", reason: found.reason, candidates: found.candidates, isGone: found.isGone };
  const { element, score, by, matched } = found.chosen;
  const match = { ...told(element), score, by, matched, equals: found.equals };
  const hand = visible(element) && boxOf(element).width >= 1 ? element : (labelShown(element) ?? element);
  const place = purpose === "any" ? {} : await reachable(hand);
  globalThis.continuityTarget = element;
  if (place.reason && isGuarded) return { outcome: "missing", ...place, candidates: [match] };
  if (isGuarded && !found.presses) {
    staysHere(element);
    guard(hand);
  }
  return { outcome: "ready", match, x: place.x, y: place.y, presses: found.presses ?? "", url: location.href, ...fieldOf(element) };
};

// Look for the element until it is there and can be used, or the time is up.
const aim = async (request) => {
  const deadline = now() + request.timeoutMs;
  try {
    for (;;) {
      const answer = await attempt(request);
      if (answer.outcome === "ready" || answer.isGone || now() >= deadline) return answer;
      await sleep(Math.min(100, Math.max(1, deadline - now())));
    }
  } catch (error) {
    if (error instanceof DOMException && error.name === "SyntaxError") return { outcome: "bad_selector" };
    throw error;
  }
};
