// What a page shows, and which parts of it change by themselves: clocks, counters, rotating headlines. A piece is the
// text of one element without that of the elements in it; the element's place in the document identifies it.
const LOADING_WORDS = "searching|loading|fetching|please wait|suche läuft|wird geladen|chargement|cargando|buscando|正在搜索|正在加载|搜索中|加载中|请稍候|読み込み中|検索中";
const LOADING_LINE = new RegExp(`^[^\\p{L}]*(${LOADING_WORDS})([^\\p{L}]*| (results?|for|more|data)\\b.{0,60}|.{0,60}(\\.\\.|…))$`, "iu");
const PASSING = new Set(["listbox", "timer", "marquee", "tooltip"]);
const LOADERS = "[aria-busy=true],[role=progressbar]:not([aria-valuenow]),progress:not([value])";
const SAMPLE_MS = 100;
const INPUT_MS = 500; // a change this soon after an input may be its effect
const PROOF_MS = 1500; // a piece that has held still for so long is not a clock that shows seconds
const REPEATS = 3;
const UNUSED_MS = 60_000; // then the watch ends
const MAX_CLOCKS = 8; // pieces that change at the same moment
const MAX_WATCHED = 20_000; // elements

const piecesShown = () => {
  const pieces = new Map();
  let left = MAX_WATCHED;
  const visit = (parent, path) => {
    let [text, number] = ["", 0];
    eachChild(parent, (child) => {
      const kind = nodeKind(child);
      if (kind === TEXT) text += dataOf(child);
      if (kind !== ELEMENT) return undefined;
      number += 1;
      left -= 1;
      if (left < 0) return STOP;
      const tag = tagOf(child);
      if (!NO_TEXT.has(tag) && !PASSING.has(attr(child, "role")) && visible(child)) visit(child, `${path}/${number}${tag}`);
      return undefined;
    });
    const shown = collapse(text).trim();
    if (shown || !number) pieces.set(path, shown); // also an empty element without children: a clock may start in it
  };
  const body = bodyOf(document);
  if (body) visit(body, "");
  return pieces;
};

// The form in which two texts are compared: clocks and counters show the same.
const withoutNumbers = (text) => {
  const plain = text.replace(/\d+/g, "#");
  return /[^\s#:.,/%-]/.test(plain) ? plain : "";
};

// Return whether a piece changed while nothing was entered, or changes again and again, other than by growing.
const isSelfChanging = (piece, moment) => piece.own >= 1
  || (piece.changes >= REPEATS && piece.shownAt - piece.changedAt >= PROOF_MS && moment - piece.shownAt < 2 * PROOF_MS && !piece.grows);

const noteNew = (watch, path, shown, moment) => {
  const isNew = watch.sampledAt !== null;
  const [text, at] = [withoutNumbers(shown), isNew ? moment : -Infinity];
  watch.pieces.set(path, { shown, text, shownBefore: isNew ? null : shown, before: isNew ? "" : text, own: 0, changes: isNew ? 1 : 0, grows: true, changedAt: at, shownAt: at, textAt: at });
};
const noteChange = (piece, shown, moment, weight) => {
  const text = withoutNumbers(shown ?? "");
  if (piece.shown !== null) piece.own += weight;
  piece.grows &&= shown !== null && shown.startsWith(piece.shown ?? "");
  piece.changes += 1;
  if (piece.changes === 1) piece.changedAt = moment;
  if (piece.text !== text) piece.textAt = moment;
  Object.assign(piece, { shown, text, shownAt: moment });
};

const sampleTexts = (watch) => {
  const moment = now();
  const isUntouched = moment - watch.inputAt > INPUT_MS;
  if (isUntouched && watch.sampledAt !== null) watch.untouchedMs += moment - watch.sampledAt;
  const shown = piecesShown();
  const changed = [...watch.pieces].filter(([path, piece]) => piece.shown !== (shown.get(path) ?? null));
  // Many at once: something was inserted or removed. If the page waits for an answer, only a second change counts.
  const isOwn = watch.learns && isUntouched && changed.length <= MAX_CLOCKS;
  for (const [path, piece] of changed) noteChange(piece, shown.get(path) ?? null, moment, isOwn ? (isBusy() ? 0.5 : 1) : 0);
  for (const [path, text] of shown) if (!watch.pieces.has(path)) noteNew(watch, path, text, moment);
  watch.sampledAt = moment;
};

const keepSampling = async (watch) => {
  while (now() - watch.usedAt < UNUSED_MS) {
    const began = now();
    sampleTexts(watch);
    await sleep(Math.max(SAMPLE_MS, 10 * (now() - began)));
  }
  globalThis.continuityTexts = null;
};

const currentTexts = () => {
  const found = globalThis.continuityTexts;
  if (found) return found;
  const watch = { pieces: new Map(), inputAt: -Infinity, sampledAt: null, usedAt: now(), startedAt: now(), untouchedMs: 0, learns: false };
  globalThis.continuityTexts = watch;
  const onInput = (event) => {
    if (event.isTrusted || event.type === "change") watch.inputAt = now();
  };
  for (const type of ["keydown", "pointerdown", "input", "change"]) listen(window, type, onInput, { capture: true, passive: true });
  keepSampling(watch);
  return watch;
};

const loadersShown = () => findRoots(document).flatMap(({ root }) => [...all(root, LOADERS)]).filter(visible).length;

// `text` is a hash of all that is shown; `touched` says whether something differs from before that does not change by itself,
// `changed` whether it has held still since; `stillMs` is how long all has held still that does not change by itself;
// `loading` counts signs that something is still to come; `untouchedMs` is how long it was watched without an input.
const shownState = () => {
  const watch = currentTexts();
  watch.usedAt = now();
  sampleTexts(watch);
  const moment = now();
  const all_ = [...watch.pieces.values()];
  const shown = all_.map(({ text }) => text).filter(Boolean).sort();
  const others = all_.filter((piece) => !isSelfChanging(piece, moment));
  const differing = others.filter(({ text, before }) => text !== before);
  return {
    text: hashOf(shown.join("\n")),
    touched: differing.length > 0,
    changed: differing.some(({ shownAt }) => moment - shownAt >= PROOF_MS),
    stillMs: moment - others.reduce((last, { textAt }) => Math.max(last, textAt), watch.startedAt),
    loading: shown.filter((text) => LOADING_LINE.test(text)).length + loadersShown(),
    busy: isBusy(),
    untouchedMs: watch.untouchedMs,
  };
};

// How many pieces differ, in numbers too, from what was shown at the last watchTexts, and whether one of them stays as it is;
// null in a document without one.
const shownChange = () => {
  const watch = currentTexts();
  watch.usedAt = now();
  sampleTexts(watch);
  const moment = now();
  if (!watch.isCompared) return { pieces: null, stays: true };
  const others = [...watch.pieces.values()].filter((piece) => piece.shown !== piece.shownBefore && !isSelfChanging(piece, moment));
  return { pieces: others.length, stays: others.some(({ shownAt }) => moment - shownAt >= PROOF_MS) };
};

// The addresses that scripts requested since the document loaded.
const addressesRequested = () => performance.getEntriesByType("resource")
  .filter(({ initiatorType }) => initiatorType === "fetch" || initiatorType === "xmlhttprequest").map(({ name }) => name);

// Compare with what is shown now from here on. With `learns`, what changes until the next call changes by itself.
const watchTexts = ({ learns }) => {
  const watch = currentTexts();
  sampleTexts(watch);
  Object.assign(watch, { learns, untouchedMs: 0, isCompared: true });
  for (const piece of watch.pieces.values()) {
    Object.assign(piece, { before: piece.text, shownBefore: piece.shown, changes: 0, grows: true, changedAt: -Infinity, shownAt: -Infinity, textAt: -Infinity });
  }
  return { ...shownState(), requested: addressesRequested() };
};
