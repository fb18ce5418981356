// The page as lines in document order: headings, texts, and one line for each usable element among its text.
const MAX_LINES = 4000;
const PARAGRAPH_LIMIT = 2000;
const INLINE = new Set([
  "a", "abbr", "b", "bdi", "bdo", "button", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img", "input", "ins", "kbd", "label", "mark",
  "q", "s", "samp", "select", "small", "span", "strong", "sub", "sup", "textarea", "time", "tt", "u", "var", "wbr",
]);
const HEADING = /^h[1-6]$/;
const HAS_WORDS = /[\p{L}\p{N}]/u;
const WORD_END = /[\p{L}\p{N}]$/u;
const WORD_START = /^[\p{L}\p{N}]/u;
const NAMED_BY_TEXT = new Set(["link", "button"]);

const levelOf = (element, tag) => {
  if (HEADING.test(tag)) return Number(tag[1]);
  return attr(element, "role") === "heading" ? Number(attr(element, "aria-level")) || 2 : 0;
};
// How lines begin that are no text of the page: elements, headings, gaps, frames, what the observation itself says.
const NO_TEXT_LINE = /^(?:[[#…\\]|frame(?: "| of another site|$)|\(\d+ (?:elements are behind|unchanged lines))/;
const INVISIBLE_START = /^[\p{Cf}\p{Z}]+/u;
const plainLine = (text) => collapse(text.replace(CONTROL, "")).trim();
// A text that begins like one of them is marked, so that a page cannot imitate them.
const textLine = (text) => {
  const line = plainLine(text);
  return NO_TEXT_LINE.test(line.replace(INVISIBLE_START, "")) ? `\\${line}` : line;
};
// Texts for screen readers alone are clipped to a dot.
const isDot = ({ width, height }) => width > 0 && width <= 1 && height <= 1;
const isClipped = (element) => isDot(boxOf(element)) && getComputedStyle(element).overflow !== "visible";
const isInViewport = (node) => {
  const box = boxOf(node);
  const [from, to] = [inTop(node, box), inTop(node, { x: box.right, y: box.bottom })];
  return to.y > 0 && from.y < window.innerHeight && to.x > 0 && from.x < window.innerWidth;
};
const isSummary = (node) => nodeKind(node) === ELEMENT && tagOf(node) === "summary";

class Outline {
  constructor(listed, omitted, secrets) {
    this.listed = listed; // element → {clickId, visibility, isNew}
    this.omitted = omitted;
    this.secrets = secrets;
    this.lines = [];
    this.left = new Set(listed.keys());
    this.silent = 0; // in a label, whose text is part of its field's line
    this.begin();
  }

  begin(level = 0) {
    this.text = "";
    this.end = 0; // where the links begin after which no more words follow: they have lines of their own
    this.hasWords = false;
    this.isAfterLink = false;
    this.holder = null;
    this.level = level;
    this.waiting = [];
  }

  flush(level = 0) {
    const text = collapse(this.text.slice(0, this.end)).replace(/^[ |]+|[ |]+$/g, "");
    const { hasWords, holder, waiting } = this;
    const mark = this.level ? `${"#".repeat(this.level)} ` : "";
    this.begin(level);
    if (hasWords) this.add({ text: mark + (mark ? text : textLine(text)), isText: true, inView: isInViewport(holder) });
    for (const line of waiting) this.add(line);
  }

  add(line) {
    if (this.lines.length < MAX_LINES) this.lines.push({ ...line, text: shorten(this.masked(line.text), PARAGRAPH_LIMIT) });
  }

  masked(text) {
    return masked(plainLine(text), this.secrets.values).toWellFormed();
  }

  addText(text, holder, isLink = false) {
    if (this.silent) return;
    const isApart = (isLink || this.isAfterLink) && WORD_END.test(this.text) && WORD_START.test(text);
    const isAtEnd = this.text.length === this.end;
    this.text += isApart ? ` ${text}` : text;
    this.isAfterLink = isLink;
    if (isLink) return;
    const isWords = HAS_WORDS.test(text);
    if (isWords || isAtEnd) this.end = this.text.length;
    if (!isWords) return;
    this.hasWords = true;
    this.holder ??= holder;
  }

  addElement(element) {
    const { clickId, visibility, isNew } = this.listed.get(element);
    this.left.delete(element);
    const covered = visibility === "covered" ? " covered" : "";
    const text = `[${clickId}]${isNew ? "*" : ""} ${elementWords(element, this.secrets)}${covered}`;
    this.waiting.push({ text, element, inView: visibility === "shown" });
  }

  visit(node) {
    if (this.lines.length >= MAX_LINES) return STOP;
    const kind = nodeKind(node);
    if (kind === TEXT) this.addText(dataOf(node), parentElementOf(node));
    else if (kind === ELEMENT) this.visitElement(node, tagOf(node));
    return undefined;
  }

  visitElement(element, tag) {
    if (attr(element, "aria-hidden") === "true" || hasAttr(element, "inert") || !visible(element)) return;
    if (this.omitted.has(element) || isClipped(element)) return;
    if (this.listed.has(element)) this.visitListed(element);
    else if (tag === "img") this.addText(` ${attr(element, "alt") ?? ""} `, element);
    else if (tag === "br" || tag === "hr") this.addText(" ", element);
    else if (tag in FRAME_DOCUMENT) this.visitFrame(element);
    else if (!NO_TEXT.has(tag) || shadowOf(element)) this.visitChildren(element, tag);
  }

  visitListed(element) {
    const type = typeOfElement(element);
    this.addElement(element);
    const isNamed = NAMED_BY_TEXT.has(type);
    if (type === "link") this.addText(lineOfText(element, LABEL_LIMIT), element, true);
    if (isNativeField(element) || own(element, "isContentEditable")) return;
    if (this.hasListedInside(element)) {
      this.flush();
      eachChild(element, (child) => this.visit(child));
      this.flush();
    } else if (!isNamed || rawText(element).length > LABEL_LIMIT) this.addRest(element);
  }

  // What the label of an element does not show of its text.
  addRest(element) {
    const text = lineOfText(element, PARAGRAPH_LIMIT);
    if (text.length <= LABEL_LIMIT) return;
    const shown = shorten(text, LABEL_LIMIT).length - 1; // without the ellipsis
    this.waiting.push({ text: textLine(text.slice(shown).trim()), isText: true, inView: isInViewport(element) });
  }

  hasListedInside(element) {
    return NATIVE.has(tagOf(element)) && tagOf(element) !== "summary" ? false : [...all(element, "*")].some((inner) => this.listed.has(inner));
  }

  visitFrame(frame) {
    this.flush();
    const name = labelText(attr(frame, "title") || attr(frame, "name"));
    const isReadable = Boolean(innerDocument(frame));
    const box = boxOf(frame);
    if (box.width < 2 || box.height < 2) return;
    const address = isReadable ? "" : ` of another site, not readable: ${shorten(shortAddress(frame.src), LINE_ADDRESS_LIMIT)}`;
    this.add({ text: `frame${name ? ` ${quoted(name)}` : ""}${address}`, isText: true, inView: isInViewport(frame) });
    if (isReadable) eachChild(frame, (child) => this.visit(child));
    this.flush();
  }

  visitChildren(element, tag) {
    const level = levelOf(element, tag);
    const isInline = !level && (INLINE.has(tag) || tag === "td" || tag === "th" || getComputedStyle(element).display.startsWith("inline"));
    const isNaming = tag === "label" && element.control && this.listed.has(element.control);
    if (!isInline) this.flush(level);
    this.silent += isNaming ? 1 : 0;
    const isClosed = tag === "details" && !hasAttr(element, "open");
    eachChild(element, (child) => (isClosed && !isSummary(child) ? undefined : this.visit(child)));
    this.silent -= isNaming ? 1 : 0;
    if (!isInline) this.flush();
    else if (tag === "td" || tag === "th") this.addText(" | ", element);
  }

  // Elements that the walk did not reach, for example those in an image map.
  addOthers() {
    this.flush();
    for (const element of this.left) this.addElement(element);
    this.flush();
  }
}
