// Find text as people see it: across inline elements, shadow roots and same-origin frames, without regard to case and space.
const MAX_MATCHES = 20;
const MATCH_CONTEXT = 70; // characters before and after a match
const MAX_CLIMB = 6; // how far around a match its nearest usable element is searched
const newRange = method(Document.prototype, "createRange");
const rectsOfRange = method(Range.prototype, "getClientRects");
const startRange = method(Range.prototype, "setStart");
const endRange = method(Range.prototype, "setEnd");

// The visible text in blocks, each with its text nodes and where they start.
const textBlocks = () => {
  const blocks = [];
  let block = null;
  const visit = (node) => {
    if (nodeKind(node) === TEXT) {
      block ??= blocks[blocks.push({ text: "", parts: [] }) - 1];
      block.parts.push({ node, start: block.text.length });
      block.text += dataOf(node);
    }
    if (nodeKind(node) !== ELEMENT) return;
    const tag = tagOf(node);
    if (tag === "br" && block) block.text += " ";
    if (NO_TEXT.has(tag) || attr(node, "aria-hidden") === "true" || !visible(node)) return;
    const isBlock = tag in FRAME_DOCUMENT || !/^(inline|contents)/.test(getComputedStyle(node).display);
    if (isBlock) block = null;
    eachChild(node, visit);
    if (isBlock) block = null;
  };
  if (rootOf(document)) visit(rootOf(document)); // a document that is being written has no root yet
  return blocks;
};

// By character, as withPlaces: in a whole word the lower case of a letter may be another (Greek ς).
const lowerCase = (text) => text.replace(/[^]/g, (character) => (character === "ς" ? "σ" : character.toLowerCase()));
const plainText = (text) => lowerCase(collapse(text).trim());
const isSpace = (character) => /\s/.test(character);
// The text in lower case with single spaces, and the place in the original of each of its characters.
const withPlaces = (text) => {
  let plain = "";
  const places = [];
  for (let at = 0; at < text.length; at += 1) {
    const lower = lowerCase(collapse(text[at]));
    if (lower === " " && isSpace(plain.at(-1) ?? "")) continue;
    for (const character of lower) {
      plain += character;
      places.push(at);
    }
  }
  return { plain, places };
};
const matchesIn = (block, wanted) => {
  if (!plainText(block.text).includes(wanted)) return [];
  const { plain, places } = withPlaces(block.text);
  const found = [];
  for (let at = plain.indexOf(wanted); at >= 0; at = plain.indexOf(wanted, at + wanted.length)) {
    found.push({ block, from: places[at], to: places[at + wanted.length - 1] + 1 });
  }
  return found;
};
const findMatches = (wanted) => textBlocks().flatMap((block) => matchesIn(block, wanted));

const partAt = ({ parts }, at) => parts.findLast(({ start }) => start <= at);
// Where a match is on the page, in the outermost document.
const placeOf = ({ block, from, to }) => {
  const { node, start } = partAt(block, from);
  const range = newRange(documentOf(node));
  startRange(range, node, from - start);
  endRange(range, node, Math.min(to - start, dataOf(node).length));
  const rect = rectsOfRange(range)[0] ?? boxOf(elementAround(node));
  const { x, y } = inTop(node, rect);
  return { node, x: x + window.scrollX, y: y + window.scrollY };
};
const elementAround = (node) => {
  let around = node;
  while (nodeKind(around) !== ELEMENT) around = parentAcross(around);
  return around;
};

const gapTo = ({ x, y }, bounds) => {
  const across = Math.max(bounds.x - x, x - bounds.x - bounds.width, 0);
  const down = Math.max(bounds.y - y, y - bounds.y - bounds.height, 0);
  return across + 2 * down; // what is on the same line is nearer
};
// The usable element that the match is part of or labels, else the nearest in the smallest part of the page around it.
const nearestUsable = (place, usable) => {
  const known = new Map(usable.map((one_) => [one_.element, one_]));
  for (let node = elementAround(place.node), level = 0; node && nodeKind(node) !== DOCUMENT; node = parentAcross(node), level += 1) {
    if (nodeKind(node) !== ELEMENT) continue;
    if (known.has(node)) return node;
    if (tagOf(node) === "label" && known.has(node.control)) return node.control;
    if (level >= MAX_CLIMB || tagOf(node) === "body") return null;
    const inside = usable.filter(({ element }) => isAround(node, element));
    if (inside.length) return inside.reduce((a, b) => (gapTo(place, b.bounds) < gapTo(place, a.bounds) ? b : a)).element;
  }
  return null;
};

const excerpt = ({ block, from, to }, secrets) => {
  const before = block.text.slice(Math.max(0, from - MATCH_CONTEXT), from).toWellFormed();
  const after = block.text.slice(to, to + MATCH_CONTEXT).toWellFormed();
  const text = collapse(`${from > MATCH_CONTEXT ? "…" : ""}${before}${block.text.slice(from, to)}${after}`).trim();
  return masked(text + (to + MATCH_CONTEXT < block.text.length ? "…" : ""), secrets.values);
};

const findText = async ({ text, scroll: wantsScroll, attribute, firstId }) => {
  const hosts = unopenedHosts();
  if (hosts) return { closedHosts: hosts };
  let found = findMatches(plainText(text));
  if (wantsScroll && found.length) {
    scrollTo(elementAround(placeOf(found[0]).node), { block: "center", inline: "nearest", behavior: "instant" });
    await settleScroll();
    found = findMatches(plainText(text)); // the page may have changed while it scrolled
  }
  const roots = findRoots(document);
  const secrets = findSecrets(roots.map(({ root }) => root));
  const usable = found.length ? usableNow(roots, "document") : [];
  clickIds.next = Math.max(clickIds.next, firstId);
  const matches_ = found.slice(0, MAX_MATCHES).map((match) => {
    const place = placeOf(match);
    const near = nearestUsable(place, usable);
    if (near) setAttr(near, attribute, String(clickIdOf(near)));
    return {
      text: excerpt(match, secrets), screen: 1 + Math.max(0, Math.floor(place.y / window.innerHeight)),
      ...(near ? { clickId: clickIdOf(near) } : {}),
    };
  });
  return { closedHosts: 0, total: found.length, matches: matches_, nextId: clickIds.next };
};

// Wait until a text is shown, or until it is gone; return whether that came true in time.
const waitForText = async ({ text, gone, timeoutMs }) => {
  const [wanted, deadline] = [plainText(text), now() + timeoutMs];
  for (;;) {
    const began = now();
    const hosts = unopenedHosts();
    if (hosts) return { closedHosts: hosts };
    const isShown = textBlocks().some((block) => plainText(block.text).includes(wanted));
    // While the document arrives, the text may still be on its way.
    if (isShown !== gone && !(gone && document.readyState === "loading")) return { closedHosts: 0, isMet: true };
    if (now() >= deadline) return { closedHosts: 0, isMet: false };
    await sleep(Math.max(1, Math.min(Math.max(100, 4 * (now() - began)), deadline - now())));
  }
};
