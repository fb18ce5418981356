// Choose the lines of a page that fit into an observation; say which are left out.
const EXCERPT_BYTES = 3500;
const FULL_EXCERPT_BYTES = 12_000;
const EXCERPT_TEXT_LIMIT = 160; // characters of a text on a page that has to be cut
const GAP_BYTES = 48; // what a mark for omitted lines takes at most

const utf8 = new TextEncoder();
const lineBytes = (text) => utf8.encode(text).length + 1;

const shortenedLine = ({ text, isText }) => {
  const characters = [...text];
  if (!isText || characters.length <= EXCERPT_TEXT_LIMIT) return text;
  return `${characters.slice(0, EXCERPT_TEXT_LIMIT - 1).join("").trimEnd()}…`;
};

const linesFrom = (texts, start, limit) => {
  let end = start - 1;
  for (let size = 0; end < texts.length; end += 1) {
    if (size > 0 && size + lineBytes(texts[end]) > limit) break;
    size += lineBytes(texts[end]);
  }
  const left = Math.max(0, texts.length - end);
  return { text: texts.slice(start - 1, end).join("\n"), next: left > 0 ? end + 1 : null, left };
};

// The positions of the lines to show: those in view, then those after, then the rest.
const chosenLines = (lines, texts, limit) => {
  const positions = lines.map((_, at) => at);
  const inView = positions.filter((at) => lines[at].inView);
  const begin = inView[0] ?? 0;
  const after = positions.filter((at) => at >= begin && !lines[at].inView);
  const before = positions.filter((at) => at < begin && !lines[at].inView).reverse();
  const found = new Set();
  let left = limit - GAP_BYTES;
  for (const at of [...inView, ...after, ...before]) {
    const isApart = !found.has(at - 1) && !found.has(at + 1);
    left -= lineBytes(texts[at]) + (isApart ? GAP_BYTES : 0);
    if (left < 0) break;
    found.add(at);
  }
  return found;
};

const markedLines = (texts, shownAt) => {
  const shown = [];
  const omitted = texts.map((_, at) => at).filter((at) => !shownAt.has(at));
  for (const [at, text] of texts.entries()) {
    if (shownAt.has(at)) shown.push(text);
    else if (at === 0 || shownAt.has(at - 1)) {
      let end = at;
      while (end < texts.length && !shownAt.has(end)) end += 1;
      shown.push(`… ${end - at} lines left out (from: ${at + 1})`);
    }
  }
  const first = shownAt.size ? Math.min(...shownAt) : -1;
  const following = omitted.filter((at) => at > first);
  const next = (following.length ? following : omitted)[0];
  return { text: shown.join("\n"), next: next === undefined ? null : next + 1, left: omitted.length };
};

// Lines are {text, inView, isText?}, numbered from 1. Returns {text, next, left}: the lines from number `start` on, or those
// in view first, as far as they fit; the line with which to read on (null if none is left); how many are left out.
// Long texts are shortened on a page that does not fit as a whole, unless `full`, which also raises the limit.
const excerptOf = (lines, { start = null, full = false } = {}) => {
  const limit = full ? FULL_EXCERPT_BYTES : EXCERPT_BYTES;
  let texts = lines.map(({ text }) => text);
  const size = texts.reduce((sum, text) => sum + lineBytes(text), 0);
  if (start === null && size <= limit) return { text: texts.join("\n"), next: null, left: 0 };
  if (!full) texts = lines.map(shortenedLine);
  return start === null ? markedLines(texts, chosenLines(lines, texts, limit)) : linesFrom(texts, start, limit);
};
