// The page's text as sections under their headings, in compact markdown. Navigation, cookie bars, page headers and
// footers, scripts and hidden content are omitted; so are fields, which are part of the elements.
const BLOCKS = new Set([
  "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "div", "dl", "dt",
  "fieldset", "figcaption", "figure", "footer", "form", "frame", "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr",
  "iframe", "legend", "li", "main", "menu", "nav", "ol", "p", "pre", "search", "section", "summary", "table", "tbody",
  "td", "tfoot", "th", "thead", "tr", "ul",
]);
const BLOCK_SELECTOR = "p,div,section,article,ul,ol,table,h1,h2,h3,h4,h5,h6,pre,blockquote,dl,figure";
const HEADINGS = "h1,h2,h3,h4,h5,h6,[role=heading]";
const CLUTTER_ROLES = new Set([
  "navigation", "banner", "contentinfo", "search", "menu", "menubar", "toolbar", "tablist", "tooltip",
]);
const CLUTTER_NAMES = new Set([
  "nav", "navbar", "navigation", "topnav", "sidenav", "subnav", "menu", "menubar", "sidebar", "sphinxsidebar", "related",
  "breadcrumb", "breadcrumbs", "footer", "skip", "share", "social", "advert", "ads", "banner",
  "toolbar",
]);
const CONSENT = /cookie|consent|gdpr|onetrust|隐私提示/i;

const nameOf = (element) => `${attr(element, "id") ?? ""} ${attr(element, "class") ?? ""}`;

const hasClutterName = (name) => {
  return name !== " " && name.toLowerCase().split(/[\s_-]+/).some((word) => CLUTTER_NAMES.has(word));
};

const isConsentBar = (element, name) => {
  if (!CONSENT.test(name) || rawText(element).length > 4000) return false;
  const floats = ["fixed", "sticky"].includes(getComputedStyle(element).position);
  return floats || one(element, "button,[role=button],input,a") !== null;
};

// The links to a list's other pages say where one is ("Page 1 of 6") and belong to the content.
const PAGER = /(^|[\s_-])(pager|pagination|paginator|paging|page-?numbers?)([\s_-]|$)|分页|翻页/i;
const isPager = (element) =>
  PAGER.test(`${nameOf(element)} ${attr(element, "aria-label") ?? ""}`) ||
  (one(element, "a[rel~=next],a[rel~=prev]") !== null && rawText(element).length < 300);

const MAY_BE_CLUTTER = new Set(["div", "section", "ul", "ol", "form", "dialog", "p", "table"]);
// Page chrome instead of content. Inside <main>, an aside is a remark and a header belongs to the content.
const isClutter = (element, tag, style) => !style.keepAll && framesContent(element, tag, style) && !isPager(element);
const framesContent = (element, tag, style) => {
  if (tag === "nav") return true;
  const isNamed = hasAttributes(element);
  if (isNamed && CLUTTER_ROLES.has(attr(element, "role"))) return true;
  if (tag === "aside" || tag === "footer" || tag === "header") {
    const framesPage = !style.inMain && closest(element, "article,section,main") === null;
    return framesPage && (tag !== "header" || one(element, "h1") === null);
  }
  if (!isNamed || !MAY_BE_CLUTTER.has(tag)) return false;
  const name = nameOf(element);
  if (isConsentBar(element, name)) return true;
  return hasClutterName(name) && one(element, "h1,main,article,[role=main]") === null &&
    rawText(element).length < style.wholeLength / 2;
};

const codeBlock = (element, style) => {
  const candidates = [element, element.parentElement, one(element, "code")];
  const names = candidates.map((node) => (node && attr(node, "class")) ?? "").join(" ");
  const language = names.match(/(?:language|lang|highlight(?:-source)?|brush:)-? ?([a-z0-9+#]+)/i)?.[1] ?? "";
  const code = masked(rawText(element).replace(/\u00a0/g, " ").replace(/^\n+|\s+$/g, ""), style.secrets.values);
  const fence = code.includes("```") ? "````" : "```";
  return code && `${fence}${/^(default|text|none)$/i.test(language) ? "" : language.toLowerCase()}\n${code}\n${fence}`;
};

const headingLevel = (element, tag) => {
  if (tag.length === 2 && tag[0] === "h" && tag !== "hr") return Number(tag[1]);
  return hasAttributes(element) && attr(element, "role") === "heading" ? Number(attr(element, "aria-level")) || 2 : 0;
};

const rowsOf = getter(HTMLTableElement.prototype, "rows");
const isLayoutTable = (table) => {
  const role = attr(table, "role");
  if (role === "presentation" || role === "none" || one(table, "table,h1,h2,ul ul,form") !== null) return true;
  return [...rowsOf(table)].filter((row) => row.cells.length > 1).length < 2;
};

const writeTable = (table, sections, style) => {
  const cellStyle = { ...style, bare: true, keepButtons: true };
  let isFirst = true;
  for (const row of rowsOf(table)) {
    if (sections.truncated) return;
    if (!visible(row)) continue;
    const cells = [...row.cells].map((cell) => tidy(inlineOf(cell, cellStyle)).replaceAll("|", "\\|"));
    if (!cells.some(Boolean)) continue;
    sections.add(`| ${cells.join(" | ")} |`, true);
    if (isFirst && row.cells.length > 1 && [...row.cells].every((cell) => tagOf(cell) === "th")) {
      sections.add(`|${cells.map(() => "---|").join("")}`, true);
    }
    isFirst = false;
  }
};

const writeList = (list, sections, style) => {
  let number = Number(attr(list, "start") ?? 1) || 1;
  const ordered = tagOf(list) === "ol";
  eachChild(list, (item) => {
    if (sections.truncated || nodeKind(item) !== ELEMENT || !isShown(item, tagOf(item), style)) return;
    const bullet = ordered ? `${number++}. ` : "- ";
    if (tagOf(item) === "li") sections.within("  ", bullet, () => writeBlocks(item, sections, style));
    else writeElement(item, tagOf(item), sections, style);
  });
};

const isBlockLike = (element, tag) => {
  if (BLOCKS.has(tag) || tag.includes("-") || shadowOf(element)) return true;
  if (tag === "a" && rawText(element).length < 300) return false;
  return firstChild(element) !== null && one(element, BLOCK_SELECTOR) !== null;
};

const writeElement = (element, tag, sections, style) => {
  if (!isShown(element, tag, style) || isClutter(element, tag, style)) return;
  const level = headingLevel(element, tag);
  if (level) {
    const heading = tidy(inlineOf(element, { ...style, bare: true, noLinks: true, keepButtons: true })).replaceAll("\n", " ");
    if (heading) sections.open(heading, level);
  } else if (tag === "pre") sections.add(codeBlock(element, style));
  else if (tag === "ul" || tag === "ol") writeList(element, sections, style);
  else if (tag === "table" && !isLayoutTable(element)) writeTable(element, sections, style);
  else if (tag === "dt" || tag === "summary") sections.add(tidy(inlineOf(element, { ...style, keepButtons: true })), true);
  else if (tag === "dd") sections.within("  ", "  ", () => writeBlocks(element, sections, style));
  else if (tag === "blockquote") sections.within("> ", "> ", () => writeBlocks(element, sections, style));
  else writeBlocks(element, sections, style);
};

// Write a node's children: consecutive inline text becomes a paragraph, blocks are written by type.
const writeBlocks = (node, sections, style) => {
  let line = "";
  let lastBox = null;
  const flush = () => {
    if (line) sections.add(tidy(line));
    line = "";
    lastBox = null;
  };
  const visitElement = (child, tag) => {
    if (NO_TEXT.has(tag)) return;
    if (tag === "slot") {
      eachChild(child, visit);
    } else if (isBlockLike(child, tag)) {
      flush();
      writeElement(child, tag, sections, style);
    } else {
      line = glue(line, inlineElement(child, style), child);
      lastBox = child;
    }
  };
  const visit = (child) => {
    if (sections.truncated) return STOP;
    const kind = nodeKind(child);
    if (kind === TEXT) {
      const text = clean(dataOf(child), style);
      line = lastBox ? glue(line, text, lastBox) : line + text;
      if (text) lastBox = null;
    } else if (kind === ELEMENT) {
      visitElement(child, tagOf(child));
    }
    return undefined;
  };
  eachChild(node, visit);
  flush();
};

// The main content of the page: <main>, or its only article, or the body.
const findMain = (body) => {
  const long = [...all(body, "main,[role=main]")].filter((element) => visible(element) && rawText(element).length >= 200);
  if (long.length) return long.reduce((best, next) => (rawText(next).length > rawText(best).length ? next : best));
  const articles = all(body, "article");
  return articles.length === 1 && rawText(articles[0]).length >= 500 ? articles[0] : body;
};

const readContent = (body, main, secrets, limit) => {
  const style = { secrets, inMain: main !== body, wholeLength: rawText(body).length };
  let sections = new Sections(limit);
  writeBlocks(main, sections, style);
  if (!sections.truncated && limit - sections.left < 40 && lineOfText(body, 120).length >= 100) {
    sections = new Sections(limit);
    writeBlocks(body, sections, { ...style, keepAll: true });
  }
  const headings = sections.truncated ? [...all(main, HEADINGS)].filter(visible).length : 0;
  return { sections: sections.list, truncated: sections.truncated, count: Math.max(sections.list.length, headings) };
};
