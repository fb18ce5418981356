// List the elements that are usable now. Each gets a click id, which it keeps while it exists and which no other element
// gets. The ids are stored in the isolated world; the attribute on the page is only a copy, which the page may change.
const INDEX_LIMIT = 2000;
const clickIds = (globalThis.continuityClickIds ??= { next: 1, ids: new WeakMap(), elements: new Map() });
const clickIdOf = (element) => {
  if (!clickIds.ids.has(element)) {
    clickIds.ids.set(element, clickIds.next);
    clickIds.elements.set(clickIds.next, new WeakRef(element));
    clickIds.next += 1;
  }
  return clickIds.ids.get(element);
};

// Return whether a click at a point activates the element.
const isHitAt = (element, x, y) => {
  const hit = deepestAt(x, y);
  return hit !== null && activates(element, hit);
};

const parentAcross = (node) => {
  const parent = parentOf(node);
  if (parent) return parent;
  return nodeKind(node) === FRAGMENT ? hostOf(node) : nodeKind(node) === DOCUMENT ? viewOf(node)?.frameElement : null;
};

// Return whether the element is out of view in a scroll container or frame, so that it can be scrolled to.
const isScrolledAway = (element) => {
  const box = boxOf(element);
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  const view = viewOf(documentOf(element));
  if (x < 0 || y < 0 || x >= view.innerWidth || y >= view.innerHeight) return true;
  for (let node = parentAcross(element); node && nodeKind(node) !== DOCUMENT; node = parentAcross(node)) {
    if (nodeKind(node) !== ELEMENT || getComputedStyle(node).overflow === "visible") continue;
    const around = boxOf(node);
    if (x < around.x || y < around.y || x > around.right || y > around.bottom) return true;
  }
  return false;
};

const isFixed = (element) => {
  for (let node = element; node; node = parentAcross(node)) {
    if (nodeKind(node) === ELEMENT && getComputedStyle(node).position === "fixed") return true;
  }
  return false;
};
// Return whether a fixed element covers the whole viewport: then it also covers what is scrolled into view.
const isOverlaid = () => [[0.5, 0.5], [0.2, 0.2], [0.8, 0.2], [0.2, 0.8], [0.8, 0.8]].every(([across, down]) => {
  const hit = deepestAt(window.innerWidth * across, window.innerHeight * down);
  return hit !== null && isFixed(hit);
});

// "shown", "away" (it can be scrolled to) or "covered".
const visibilityOf = (element) => {
  let isInView = false;
  for (const point of pointsOf(element)) {
    const { x: across, y: down } = inTop(element, point);
    if (across < 0 || down < 0 || across >= window.innerWidth || down >= window.innerHeight) continue;
    isInView = true;
    if (isHitAt(element, across, down)) return "shown";
  }
  return isInView && !isScrolledAway(element) ? "covered" : "away";
};

const usableNow = (roots, scope) => {
  const overlaid = isOverlaid();
  const isUsable = ({ element }) => {
    if (hindrance(element, "clickable")) return false;
    const visibility = visibilityOf(element);
    if (visibility === "away") return scope === "document" && (!overlaid || isFixed(element));
    return visibility === "shown";
  };
  // Listeners that a framework adds are not visible here, but the pointer cursor is.
  const found = [...boxesOf(roots), ...boxesOf(roots, MAY_LOOK_CLICKABLE, looksClickable)].filter(isUsable);
  return found.sort((a, b) => a.bounds.y - b.bounds.y || a.bounds.x - b.bounds.x);
};

const boxInView = (element, bounds) => {
  if (!frameAround(element)) return { x: bounds.x - Math.round(window.scrollX), y: bounds.y - Math.round(window.scrollY), w: bounds.width, h: bounds.height };
  const box = boxOf(element);
  const [from, to] = [inTop(element, box), inTop(element, { x: box.right, y: box.bottom })];
  return { x: Math.round(from.x), y: Math.round(from.y), w: Math.round(to.x - from.x), h: Math.round(to.y - from.y) };
};
const describeIndexed = ({ element, bounds }, secrets) => {
  const text = masked(labelOf(element, typeOfElement(element), attributeNames(element)), secrets.values);
  return {
    tag: tagOf(element), ...(text ? { text: text.toWellFormed() } : {}), xpath: pathOf(element),
    bbox: boxInView(element, bounds),
  };
};

// Write the click ids to the page. Remove the attribute from other elements, such as clones.
const writeClickIds = (roots, attribute, indexed) => {
  for (const { root } of roots) {
    for (const element of all(root, `[${attribute}]`)) if (!indexed.has(element)) dropAttr(element, attribute);
  }
  for (const element of indexed) {
    const clickId = String(clickIdOf(element));
    if (attr(element, attribute) !== clickId) setAttr(element, attribute, clickId);
  }
};

// Elements that may have a closed shadow root. The caller exposes these roots (shadow_dom.py) and calls again.
const HOSTS = new Set(["article", "aside", "blockquote", "div", "footer", "header", "main", "nav", "p", "section", "span"]);
const MAX_PROBES = 2; // a root may be attached after its host
const MAX_HOSTS = 64;
const probes = (globalThis.continuityProbes ??= new WeakMap());
const OVERLAY = "continuity-overlay"; // of the browser extension, and no part of the page
const mayHaveClosedRoot = (element) => {
  const tag = tagOf(element);
  if (tag === OVERLAY) return false;
  if (shadowOf(element) || (probes.get(element) ?? 0) >= MAX_PROBES) return false;
  if (!tag.includes("-") && !(HOSTS.has(tag) && !firstChild(element))) return false;
  const box = boxOf(element);
  return box.width >= 1 && box.height >= 1;
};
const possibleClosedHosts = (roots) => {
  const found = [];
  for (const { root } of roots) {
    for (const element of all(root, ":not(form)")) {
      if (found.length >= MAX_HOSTS) return found;
      if (mayHaveClosedRoot(element)) found.push(element);
    }
  }
  for (const element of found) probes.set(element, (probes.get(element) ?? 0) + 1);
  return found;
};

// The number of elements whose closed roots the caller has to expose first.
const unopenedHosts = (roots = findRoots(document)) => {
  const hosts = possibleClosedHosts(roots);
  globalThis.continuityClosedHosts = hosts;
  return hosts.length;
};

const MODES = {
  mark: (found, { attribute, firstId }, roots, secrets) => {
    clickIds.next = Math.max(clickIds.next, firstId);
    for (const [clickId, reference] of clickIds.elements) if (!reference.deref()) clickIds.elements.delete(clickId);
    const described = found.map((box) => ({ clickId: clickIdOf(box.element), ...describeIndexed(box, secrets) }));
    writeClickIds(roots, attribute, new Set(found.map(({ element }) => element)));
    return described;
  },
  scan: (found, args, roots, secrets) => found.map((box) => {
    const clickId = clickIds.ids.get(box.element);
    return { ...describeIndexed(box, secrets), ...(clickId ? { clickId } : {}) };
  }),
};
const index = (args) => {
  const roots = findRoots(document);
  const hosts = unopenedHosts(roots);
  if (hosts) return { closedHosts: hosts };
  const found = usableNow(roots, args.scope);
  const secrets = findSecrets(roots.map(({ root }) => root));
  const elements = MODES[args.mode](found.slice(0, INDEX_LIMIT), args, roots, secrets);
  return { closedHosts: 0, elements, omitted: Math.max(0, found.length - INDEX_LIMIT), nextId: clickIds.next };
};
