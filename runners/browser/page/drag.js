// Hovering, keys and dragging: find their places on the page, and see what the page makes of a drag.
const DRAG_STEPS = 8;
const hoverPoint = () => clickPointOf(clickTargetOf(target()));
// In a document without a doctype, :hover alone matches only links.
const isHovered = () => ({ isHovered: matches(clickTargetOf(target()), ":is(:hover)") });

// Give the focus to an element, or leave it where it is; name the element that gets the keys.
const focusForKeys = (locator) => {
  const { element = deepActiveElement() ?? rootOf(document), problem } = locator ? referenced(locator) : {};
  if (problem) return { problem };
  expectJudged(element, locator);
  const changed = changeOfExpected(true);
  if (changed) return { problem: "changed", changed };
  if (!element) return { focus: "page", url: location.href, node: "" }; // the document is being written: keys go to the page
  if (locator && deepActiveElement() !== element) {
    element.focus();
    if (deepActiveElement() !== element) return { problem: "not_focusable" };
  }
  globalThis.continuityTarget = element;
  const isPage = [bodyOf(document), rootOf(document)].includes(element);
  const { values } = findSecrets(findRoots(document).map(({ root }) => root));
  const { type, label } = describeElement(element);
  return { focus: isPage ? "page" : masked(`${type} ${JSON.stringify(label)}`, values), url: location.href, node: nameOfNode(element) };
};

// Return whether the next key reaches a document of this origin.
const keysReady = () => {
  const active = deepActiveElement();
  return { isReady: !active || !isForeignFrame(active) };
};

const centreOf = (element) => {
  const box = boxOf(element);
  return inTop(element, { x: box.x + box.width / 2, y: box.y + box.height / 2 });
};
// Find the element to drop on, and check that it can be reached.
const dragDestination = async (locator) => {
  const { element, problem } = referenced(locator);
  if (problem) return { problem };
  const { reason, coveredBy } = await clickPointOf(element);
  globalThis.continuityDestination = element;
  return reason ? { problem: reason, coveredBy } : { node: nameOfNode(element) };
};
// Where to drop: `point`, else the centre of the destination.
const dropPoint = (point) => {
  const element = globalThis.continuityDestination;
  if (!point && !(element && isHere(element) && visible(element))) return { problem: "gone" };
  if (!point) scrollTo(element, { block: "nearest", inline: "nearest", behavior: "instant" });
  const end = point ?? centreOf(element);
  const hit = deepestAt(end.x, end.y);
  return hit && isForeignFrame(hit) ? { problem: "other_origin" } : end;
};

// Until dragOutcome is called, record whether the page starts an HTML drag, and whether it accepts the drop.
// Events that a page dispatches itself are no drag of the mouse.
const watchDrag = ({ isByMouse }) => {
  globalThis.continuityDrag?.end();
  const state = { start: null, isDropped: false };
  const listeners = {
    dragstart: (event) => { if (event.isTrusted === isByMouse) state.start ??= event; },
    drop: (event) => { if (event.isTrusted === isByMouse) state.isDropped = true; },
  };
  const places = [target(), globalThis.continuityDestination].filter(Boolean);
  const views = new Set([window, ...places.map((element) => viewOf(documentOf(element))).filter(Boolean)]);
  for (const view of views) for (const [kind, listener] of Object.entries(listeners)) listen(view, kind, listener, { capture: true });
  state.end = () => {
    for (const view of views) for (const [kind, listener] of Object.entries(listeners)) unlisten(view, kind, listener, { capture: true });
  };
  globalThis.continuityDrag = state;
  return {};
};
const htmlDrag = () => {
  const { start } = globalThis.continuityDrag;
  return { isStarted: start !== null && !start.defaultPrevented };
};
const dragOutcome = () => {
  const state = globalThis.continuityDrag;
  globalThis.continuityDrag = globalThis.continuityDestination = null;
  state?.end();
  return { isHtmlDrag: Boolean(state?.start && !state.start.defaultPrevented), isDropped: Boolean(state?.isDropped) };
};

// A point of the outermost document as a point of an element's document.
const inDocumentOf = (element, point) => {
  const frames = [];
  for (let frame = frameAround(element); frame; frame = frameAround(frame)) frames.unshift(frame);
  return frames.reduce((at, frame) => into(frame, at), point);
};
const pointerEvent = (Type, element, kind, point, more = {}) => {
  const { x, y } = inDocumentOf(element, point);
  const buttons = kind.endsWith("up") ? 0 : 1;
  const place = { clientX: x, clientY: y, button: 0, buttons, pointerId: 1, pointerType: "mouse", isPrimary: true };
  const init = { bubbles: true, cancelable: true, composed: true, view: viewOf(documentOf(element)), ...place, ...more };
  return dispatch(element, new Type(kind, init));
};
const domHover = () => {
  const element = clickTargetOf(target());
  const point = centreOf(element);
  for (const kind of ["over", "enter", "move"]) {
    const more = { buttons: 0, bubbles: kind !== "enter" };
    pointerEvent(PointerEvent, element, `pointer${kind}`, point, more);
    pointerEvent(MouseEvent, element, `mouse${kind}`, point, more);
  }
  return {};
};

const domHtmlDrag = (source, over, end) => {
  const dataTransfer = new DataTransfer();
  const fire = (element, kind) => pointerEvent(DragEvent, element, kind, end, { dataTransfer });
  if (!fire(source, "dragstart")) return false;
  fire(over, "dragenter");
  if (!fire(over, "dragover")) fire(over, "drop");
  fire(source, "dragend");
  return true;
};
const domDrag = async (offset) => {
  const source = target();
  const start = centreOf(source);
  const point = dropPoint(offset && { x: start.x + offset.dx, y: start.y + offset.dy });
  if (point.problem) return point;
  const under = (at) => deepestAt(at.x, at.y) ?? source;
  const isAllowed = pointerEvent(PointerEvent, source, "pointerdown", start) && pointerEvent(MouseEvent, source, "mousedown", start);
  const dragged = closest(source, "[draggable=true],a[href]:not([draggable=false]),img:not([draggable=false])");
  const destination = offset ? under(point) : globalThis.continuityDestination;
  if (isAllowed && dragged && domHtmlDrag(dragged, destination, point)) return {};
  for (let step = 1; step <= DRAG_STEPS; step += 1) {
    const share = step / DRAG_STEPS;
    const at = { x: start.x + (point.x - start.x) * share, y: start.y + (point.y - start.y) * share };
    const over = step === DRAG_STEPS ? destination : under(at);
    pointerEvent(PointerEvent, over, "pointermove", at);
    pointerEvent(MouseEvent, over, "mousemove", at);
    if (!document.hidden) await sleep(16); // pages that are not seen wait a second
  }
  pointerEvent(PointerEvent, destination, "pointerup", point);
  pointerEvent(MouseEvent, destination, "mouseup", point);
  return {};
};
