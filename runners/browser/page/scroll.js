// Scroll the page or the area around an element, and report the position in screens: heights of what is visible at once.
const MAX_SETTLE_MS = 1500;
const MORE_MS = 500; // how long nothing new may come at the end, while nothing is requested
const LONGEST_MORE_MS = 6000;
const scrollBoxTo = method(Element.prototype, "scrollTo");
const scrollTopOf = getter(Element.prototype, "scrollTop");
const scrollHeightOf = getter(Element.prototype, "scrollHeight");
const clientHeightOf = getter(Element.prototype, "clientHeight");
const scrollingElementOf = getter(Document.prototype, "scrollingElement");

const overflowOf = (element) => getComputedStyle(element).overflowY;
// The overflow of <body> is the viewport's if that of <html> is visible.
const viewportOverflow = (page) => {
  const [html, body] = [rootOf(page), bodyOf(page)];
  return body && overflowOf(html) === "visible" ? overflowOf(body) : overflowOf(html);
};
const isScrollable = (element) => {
  if (scrollHeightOf(element) - clientHeightOf(element) <= 1) return false;
  const page = documentOf(element);
  if (element === scrollingElementOf(page)) return !["hidden", "clip"].includes(viewportOverflow(page));
  return ["auto", "scroll"].includes(overflowOf(element));
};
const scrollAreaAround = (element) => {
  for (let node = element; node; node = parentAcross(node)) {
    if (nodeKind(node) === ELEMENT && isScrollable(node)) return node;
  }
  return null;
};
const visibleArea = (element) => {
  const box = boxOf(element);
  return Math.max(0, Math.min(box.right, innerWidth) - Math.max(box.x, 0)) * Math.max(0, Math.min(box.bottom, innerHeight) - Math.max(box.y, 0));
};
// What scrolls the page: the viewport, or in an application whose own area scrolls, the largest such area.
const mainScrollArea = () => {
  const viewport = scrollingElementOf(document) ?? rootOf(document);
  if (!viewport || isScrollable(viewport)) return viewport;
  const areas = findRoots(document).flatMap(({ root }) => [...all(root, "*")]).filter(isScrollable)
    .map((element) => ({ element, area: visibleArea(element) })).filter(({ area }) => area > 0);
  return areas.sort((a, b) => b.area - a.area)[0]?.element ?? viewport;
};

// The area is null in a document that is being written and has no root yet.
const leftBelow = (area) => scrollHeightOf(area) - clientHeightOf(area) - scrollTopOf(area);
const scrollPosition = (area) => {
  if (!area) return { screen: "screen 1 of 1", atEnd: true };
  const height = Math.max(1, clientHeightOf(area));
  const count = Math.max(1, Math.ceil((scrollHeightOf(area) - 1) / height));
  const atEnd = leftBelow(area) <= 1;
  return { screen: `screen ${atEnd ? count : Math.min(count, 1 + Math.round(scrollTopOf(area) / height))} of ${count}`, atEnd };
};
const moveTo = (area, top) => scrollBoxTo(area, { top, behavior: "instant" });
const settleScroll = async () => {
  await sleep(50); // the page's scroll listeners and observers run in the next frames
  await quiet(now() + MAX_SETTLE_MS, QUIET_MS, () => true);
};

// Wait at the end until the area grows; return false if nothing comes any more.
const growsAtEnd = async (area, deadline) => {
  const height = scrollHeightOf(area);
  const end = Math.min(deadline, now() + LONGEST_MORE_MS);
  for (let calmSince = now(); now() < end; await sleep(50)) {
    if (scrollHeightOf(area) > height + 1) return true;
    if (isBusy()) calmSince = now();
    if (now() - calmSince >= MORE_MS) return false;
  }
  return false;
};
const scrollUntilNothingNew = async (area, { maxScreens, timeoutMs }) => {
  const deadline = now() + timeoutMs;
  for (let screens = 0; ; screens += 1) {
    const isDone = leftBelow(area) <= 1 && !(await growsAtEnd(area, deadline));
    if (isDone && now() < deadline) return { screens, stopped: "" };
    if (screens >= maxScreens) return { screens, stopped: "screens" };
    if (now() >= deadline) return { screens, stopped: "time" };
    moveTo(area, scrollTopOf(area) + clientHeightOf(area));
    await sleep(50);
  }
};

// The element that a reference names, or why there is none.
const referenced = (locator) => {
  try {
    const { fits, failure = "no_match" } = byReference(locator, "any");
    return fits.length ? { element: fits[0].element } : { problem: failure };
  } catch {
    return { problem: "bad_xpath" };
  }
};
const scroll = async ({ locator, screens, to, untilNothingNew, maxScreens, timeoutMs }) => {
  const { element, problem } = locator ? referenced(locator) : {};
  if (problem) return { problem };
  const area = (element ? scrollAreaAround(element) : mainScrollArea()) ?? mainScrollArea();
  if (!area) return { moved: false, ...scrollPosition(area), ...(untilNothingNew ? { screens: 0, stopped: "" } : {}) };
  const before = scrollTopOf(area);
  let fields = {};
  if (untilNothingNew) fields = await scrollUntilNothingNew(area, { maxScreens, timeoutMs });
  else if (to !== null) moveTo(area, to === "top" ? 0 : scrollHeightOf(area));
  else if (screens !== null) moveTo(area, before + screens * clientHeightOf(area));
  else scrollTo(element, { block: "center", inline: "nearest", behavior: "instant" });
  if (!untilNothingNew) await settleScroll();
  return { moved: Math.abs(scrollTopOf(area) - before) >= 1, ...scrollPosition(area), ...fields };
};
