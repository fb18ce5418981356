// The elements that can be used now, each with a number that it keeps while it lives and that no other element gets.
// The numbers are kept in this world; what the page has of them is an attribute to look at, with which it may do what
// it likes.
const INDEX_LIMIT = 2000;
const marks = (globalThis.continuityMarks ??= { next: 1, of: new WeakMap(), by: new Map() });
const markOf = (element) => {
  if (!marks.of.has(element)) {
    marks.of.set(element, marks.next);
    marks.by.set(marks.next, new WeakRef(element));
    marks.next += 1;
  }
  return marks.of.get(element);
};

// Whether a point shows the element, or something that passes a hand on to it.
const showsAt = (element, x, y) => {
  const hit = deepestAt(x, y);
  return hit !== null && touches(element, hit);
};

const climb = (node) => {
  const parent = parentOf(node);
  if (parent) return parent;
  return nodeKind(node) === FRAGMENT ? hostOf(node) : nodeKind(node) === DOCUMENT ? viewOf(node)?.frameElement : null;
};

// Whether a scrolling box around the element, or its frame, keeps it out of sight: it can be scrolled to.
const isScrolledAway = (element) => {
  const box = boxOf(element);
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  const view = viewOf(documentOf(element));
  if (x < 0 || y < 0 || x >= view.innerWidth || y >= view.innerHeight) return true;
  for (let node = climb(element); node && nodeKind(node) !== DOCUMENT; node = climb(node)) {
    if (nodeKind(node) !== ELEMENT || getComputedStyle(node).overflow === "visible") continue;
    const around = boxOf(node);
    if (x < around.x || y < around.y || x > around.right || y > around.bottom) return true;
  }
  return false;
};

const isFixed = (element) => {
  for (let node = element; node; node = climb(node)) {
    if (nodeKind(node) === ELEMENT && getComputedStyle(node).position === "fixed") return true;
  }
  return false;
};
// Whether something that does not scroll lies over all that is in view: then what is scrolled to lies under it too.
const isOverlaid = () => [[0.5, 0.5], [0.2, 0.2], [0.8, 0.2], [0.2, 0.8], [0.8, 0.8]].every(([across, down]) => {
  const hit = deepestAt(window.innerWidth * across, window.innerHeight * down);
  return hit !== null && isFixed(hit);
});

// "shown", "away" (to be scrolled to) or "covered".
const standingOf = (element) => {
  let isInView = false;
  for (const point of pointsOf(element)) {
    const { x: across, y: down } = inTop(element, point);
    if (across < 0 || down < 0 || across >= window.innerWidth || down >= window.innerHeight) continue;
    isInView = true;
    if (showsAt(element, across, down)) return "shown";
  }
  return isInView && !isScrolledAway(element) ? "covered" : "away";
};

const usableNow = (roots, scope) => {
  const overlaid = isOverlaid();
  const canBeUsed = ({ element }) => {
    if (hindrance(element, "clickable")) return false;
    const standing = standingOf(element);
    if (standing === "away") return scope === "document" && (!overlaid || isFixed(element));
    return standing === "shown";
  };
  // A framework's listeners leave no mark on an element; its pointer does.
  const found = [...boxesOf(roots), ...boxesOf(roots, LOOKS_PRESSED, looksPressed)].filter(canBeUsed);
  return found.sort((a, b) => a.bounds.y - b.bounds.y || a.bounds.x - b.bounds.x);
};

const boxInView = (element, bounds) => {
  if (!frameAround(element)) return { x: bounds.x - Math.round(window.scrollX), y: bounds.y - Math.round(window.scrollY), w: bounds.width, h: bounds.height };
  const box = boxOf(element);
  const [from, to] = [inTop(element, box), inTop(element, { x: box.right, y: box.bottom })];
  return { x: Math.round(from.x), y: Math.round(from.y), w: Math.round(to.x - from.x), h: Math.round(to.y - from.y) };
};
const seen = ({ element, bounds }, secrets) => {
  const text = masked(labelOf(element, typeOfElement(element), attributeNames(element)), secrets.values);
  return {
    tag: tagOf(element), ...(text ? { text: text.toWellFormed() } : {}), xpath: pathOf(element),
    bbox: boxInView(element, bounds),
  };
};

// Only numbered elements have the attribute afterwards: clones bring it along.
const showMarks = (roots, attribute, kept) => {
  for (const { root } of roots) {
    for (const element of all(root, `[${attribute}]`)) if (!kept.has(element)) dropAttr(element, attribute);
  }
  for (const element of kept) {
    const mark = String(markOf(element));
    if (attr(element, attribute) !== mark) setAttr(element, attribute, mark);
  }
};

// Elements that may have a shadow root which they keep to themselves; whoever may look into it tells what is in there.
const HOSTS = new Set(["article", "aside", "blockquote", "div", "footer", "header", "main", "nav", "p", "section", "span"]);
const TIMES_ASKED = 2; // a root may come after its host
const HOSTS_ASKED = 64;
const asked = (globalThis.continuityAsked ??= new WeakMap());
const keepsApart = (element) => {
  const tag = tagOf(element);
  if (shadowOf(element) || (asked.get(element) ?? 0) >= TIMES_ASKED) return false;
  if (!tag.includes("-") && !(HOSTS.has(tag) && !firstChild(element))) return false;
  const box = boxOf(element);
  return box.width >= 1 && box.height >= 1;
};
const apart = (roots) => {
  const found = [];
  for (const { root } of roots) {
    for (const element of all(root, ":not(form)")) {
      if (found.length >= HOSTS_ASKED) return found;
      if (keepsApart(element)) found.push(element);
    }
  }
  for (const element of found) asked.set(element, (asked.get(element) ?? 0) + 1);
  return found;
};

const INDEXED = {
  mark: (found, { attribute, first }, roots, secrets) => {
    marks.next = Math.max(marks.next, first);
    for (const [mark, kept] of marks.by) if (!kept.deref()) marks.by.delete(mark);
    const told = found.map((one_) => ({ clickId: markOf(one_.element), ...seen(one_, secrets) }));
    showMarks(roots, attribute, new Set(found.map(({ element }) => element)));
    return told;
  },
  scan: (found, given, roots, secrets) => found.map((one_) => {
    const mark = marks.of.get(one_.element);
    return { ...seen(one_, secrets), ...(mark ? { clickId: mark } : {}) };
  }),
};
const index = (given) => {
  const roots = findRoots(document);
  const hosts = apart(roots);
  globalThis.continuityApart = hosts;
  if (hosts.length) return { apart: hosts.length };
  const found = usableNow(roots, given.scope);
  const secrets = findSecrets(roots.map(({ root }) => root));
  const elements = INDEXED[given.as](found.slice(0, INDEX_LIMIT), given, roots, secrets);
  return { apart: 0, elements, left: Math.max(0, found.length - INDEX_LIMIT), next: marks.next };
};
