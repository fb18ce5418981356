// Observe the page for a model: its outline, where it is scrolled to, and which of its elements are new.
const OBSERVED_LIMIT = 2000;
const seenIds = (globalThis.continuitySeenIds ??= { last: null, earlier: null });

const labelsOfHidden = (roots) => boxesOf(roots, "label", (element) => hiddenControlOf(element) !== null);
const observed = (roots) => {
  const boxes = [...boxesOf(roots), ...boxesOf(roots, MAY_LOOK_CLICKABLE, looksClickable), ...labelsOfHidden(roots)];
  const byElement = new Map(boxes.map((box) => [box.element, box]));
  for (const element of byElement.keys()) {
    if (tagOf(element) === "label" && element.control && byElement.has(element.control)) byElement.delete(element);
  }
  const isOverlaidNow = isOverlaid();
  const behind = new Set();
  const listed = [];
  for (const { element, bounds } of byElement.values()) {
    if (isInert(element)) continue;
    const visibility = visibilityOf(element);
    if (isDot(bounds) && visibility !== "shown") continue;
    if (isOverlaidNow && visibility !== "shown" && !isFixed(element)) behind.add(element);
    else listed.push({ element, bounds, visibility });
  }
  listed.sort((a, b) => a.bounds.y - b.bounds.y || a.bounds.x - b.bounds.x);
  return { listed: listed.slice(0, OBSERVED_LIMIT), behind };
};

// Which of these ids were not in the previous observation of this document; none in its first one.
const newIds = (ids, isContinued) => {
  if (!isContinued) Object.assign(seenIds, { earlier: seenIds.last, last: new Set(ids) });
  return new Set(seenIds.earlier === null ? [] : ids.filter((id) => !seenIds.earlier.has(id)));
};

const lineOutput = ({ element, ...line }, withBoxes) => {
  if (!element) return line;
  const { x, y } = inTop(element, boxOf(element));
  const { width, height } = boxOf(element);
  const place = withBoxes ? ` @ ${Math.round(x)},${Math.round(y)} ${Math.round(width)}x${Math.round(height)} ${pathOf(element)}` : "";
  return { ...line, text: line.text + place, isElement: true };
};

const outlineLines = ({ listed, behind }, isContinued, secrets) => {
  const isNew = newIds(listed.map(({ element }) => clickIdOf(element)), isContinued);
  const byElement = new Map(listed.map(({ element, visibility }) => {
    const clickId = clickIdOf(element);
    return [element, { clickId, visibility, isNew: isNew.has(clickId) }];
  }));
  const outline = new Outline(byElement, behind, secrets);
  const root = rootOf(document); // null after document.open()
  if (root) outline.visitElement(root, tagOf(root));
  outline.addOthers();
  return outline.lines;
};

const observe = async ({ attribute, firstId, start, full, withBoxes, settle: limits }) => {
  await settle(limits);
  const roots = findRoots(document);
  const hosts = possibleClosedHosts(roots);
  globalThis.continuityClosedHosts = hosts;
  if (hosts.length) return { closedHosts: hosts.length };
  clickIds.next = Math.max(clickIds.next, firstId);
  const found = observed(roots);
  const secrets = findSecrets(roots.map(({ root }) => root));
  const lines = outlineLines(found, start !== null, secrets).map((line) => lineOutput(line, withBoxes));
  const { text, next, left } = excerptOf(lines, { start, full });
  const behind = found.behind.size ? `(${found.behind.size} elements are behind a layer that covers the page)\n` : "";
  writeClickIds(roots, attribute, new Set(found.listed.map(({ element }) => element)));
  return {
    closedHosts: 0, url: location.href, title: masked(shorten(collapse(titleOf(document)).trim(), 300), secrets.values).toWellFormed(),
    status: httpStatus(), viewport: { width: window.innerWidth, height: window.innerHeight }, scroll: scrollPosition(mainScrollArea()).screen,
    text: behind + text, cut: next === null ? null : { next, left }, elements: found.listed.length, nextId: clickIds.next,
  };
};
