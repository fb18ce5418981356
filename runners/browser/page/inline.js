// Inline text with emphasis, code and links as markdown. `style` controls the output: bare (for headings and table cells:
// one line, no markup but links), noLinks, inLink, keepButtons, secrets.
const PERMALINK = /^[¶#§🔗⚓\s]*$/u;
const SKIP_LINK = /^(skip|jump) to |^跳[到至过]/i;
const ADDRESS_LIMIT = 300;

const emphasised = (mark, text) => {
  const inner = text.trim();
  if (!inner || inner.includes("\n") || inner.startsWith(mark)) return text;
  return text.replace(inner, () => mark + inner + mark);
};

const inlineCode = (element, style) => {
  const code = clean(rawText(element), style).trim();
  return code.includes("`") ? `\`\` ${code} \`\`` : code && `\`${code}\``;
};

const linkText = (element, style) => {
  const text = inlineOf(element, { ...style, inLink: true });
  const shown = text.trim();
  if (PERMALINK.test(shown)) return "";
  const address = linkAddress(element);
  if (address.startsWith("#")) return SKIP_LINK.test(shown) ? "" : text;
  if (style.noLinks || !address || address.length > ADDRESS_LIMIT) return text;
  return text.replace(shown, () => (shown === address ? shown : `[${shown}](${address})`));
};

const imageText = (element, style) => {
  const alt = clean(attr(element, "alt") ?? "", style).trim();
  return alt && !style.bare && !style.inLink ? `![${shorten(alt, 160)}]` : shorten(alt, 160);
};

// Return whether an element's text is part of the content: hidden elements, secret editors and buttons are not, except buttons
// that are the text of a heading.
const isShown = (element, tag, style) => {
  if (tag === "button" && !style.keepButtons) return false;
  if (hasAttributes(element) && (attr(element, "aria-hidden") === "true" || style.secrets.fields.has(element))) return false;
  return visible(element);
};

const MARKS = { b: "**", strong: "**", i: "*", em: "*" };
const CODE = new Set(["code", "kbd", "samp", "tt"]);
const inlineElement = (element, style) => {
  const tag = tagOf(element);
  if (tag === "br") return style.bare ? " " : "\n";
  if (tag === "img") return isShown(element, tag, style) ? imageText(element, style) : "";
  if (NO_TEXT.has(tag) || !isShown(element, tag, style)) return "";
  if (tag === "a" && hasAttr(element, "href")) return linkText(element, style);
  if (style.bare) return inlineOf(element, style);
  if (CODE.has(tag)) return inlineCode(element, style);
  return MARKS[tag] ? emphasised(MARKS[tag], inlineOf(element, style)) : inlineOf(element, style);
};

const WORD_END = /[\p{L}\p{N}]$/u;
const WORD_START = /^[[*`(]*[\p{L}\p{N}]/u;
// Adjacent boxes are separate words, even without a space between their tags.
const glue = (before, piece, element) => {
  if (!WORD_END.test(before) || !WORD_START.test(piece)) return before + piece;
  return before + (getComputedStyle(element).display.startsWith("inline") ? "" : " ") + piece;
};

const clean = (text, style) => masked(collapse(text), style.secrets.values);

// The text below a node as one line (with "\n" for <br>); blocks in it are joined.
const inlineOf = (node, style) => {
  let line = "";
  let lastBox = null;
  const visit = (child) => {
    const kind = nodeKind(child);
    if (kind === TEXT) {
      const text = clean(dataOf(child), style);
      line = lastBox ? glue(line, text, lastBox) : line + text;
      if (text) lastBox = null;
    } else if (kind === ELEMENT) {
      const piece = inlineElement(child, style);
      if (!piece) return;
      line = BLOCKS.has(tagOf(child)) ? `${line} ${piece} ` : glue(line, piece, child);
      lastBox = child;
    }
  };
  eachChild(node, visit);
  return line;
};

const tidy = (line) => line.replace(/[^\S\n]+/g, " ").replace(/ ?\n ?/g, "\n").replace(/\n{2,}/g, "\n").trim();
