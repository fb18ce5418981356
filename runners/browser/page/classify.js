// The kind of the page, guessed deterministically from its markup, and a one-sentence summary.
const SUMMARY_LIMIT = 240;
const SEARCH_PARAMETERS = ["q", "query", "search", "s", "wd", "keyword", "keywords", "search_query"];
const TEXT_INPUTS = "input:not([type]),input[type=text],input[type=email],input[type=tel],input[type=url],input[type=number]," +
  "input[type=date],textarea,select";

const meta = (name) => {
  const found = one(document, `meta[name="${name}" i],meta[property="${name}" i]`);
  return collapse((found && attr(found, "content")) ?? "").trim();
};

const shownCount = (root, selector, enough) => {
  let count = 0;
  for (const element of all(root, selector)) {
    if (visible(element)) count += 1;
    if (count >= enough) break;
  }
  return count;
};

const MUCH_PROSE = 2000;
const proseLength = (root) => {
  let length = 0;
  for (const paragraph of all(root, "p")) {
    length += rawText(paragraph).trim().length;
    if (length > MUCH_PROSE) break;
  }
  return length;
};

const linkShare = (root, length) => {
  let inLinks = 0;
  for (const link of [...all(root, "a[href]")].slice(0, 500)) inLinks += rawText(link).trim().length;
  return length ? inLinks / length : 0;
};

const isTablePage = (main, length) =>
  [...all(main, "table")].some((table) => {
    const rows = rowsOf(table).length;
    return rows >= 4 && visible(table) && !isLayoutTable(table) && rawText(table).length > length * 0.4;
  });

const isSearchPage = (main) => {
  if (!SEARCH_PARAMETERS.some((name) => here.searchParams.get(name))) return false;
  return shownCount(main, "a[href]", 3) >= 3 || one(document, "input[type=search],[role=search],search") !== null;
};

const isListPage = (main, length) => {
  const items = shownCount(main, "li a[href],article,[role=listitem],[role=feed] > *", 8);
  return items >= 8 && (linkShare(main, length) > 0.4 || all(main, "article").length >= 4);
};

const pageType = (body, main, status) => {
  if (status >= 400) return "error";
  const length = rawText(main).length;
  const prose = proseLength(main);
  if (shownCount(body, "input[type=password]", 1) && prose < MUCH_PROSE) return "login";
  if (isSearchPage(main)) return "search";
  if (shownCount(main, TEXT_INPUTS, 2) >= 2 && prose < MUCH_PROSE) return "form";
  if (isTablePage(main, length)) return "table";
  const ogType = meta("og:type");
  if (ogType === "article" || (main !== body && tagOf(main) === "article" && prose > 500)) return "article";
  if (isListPage(main, length)) return "list";
  const isReference = all(main, "dt").length >= 5 || (one(main, "pre") !== null && all(main, HEADINGS).length >= 3);
  if (prose > 1200) return isReference ? "document" : "article";
  if (one(body, "[role=application],canvas") || shownCount(body, "button,[role=button]", 6) >= 6) return "app";
  return "page";
};

const summaryOf = (body, sections) => {
  const described = meta("description") || meta("og:description") || meta("twitter:description");
  if (described) return shorten(described, SUMMARY_LIMIT);
  const prose = sections.map((section) => section.text.replace(/^ *(`{3,})[^]*?(\1|$)/gm, "")).join("\n");
  const paragraphs = prose.split("\n").map((line) => line.trim()).filter((line) => !/^(\||[-#>] )/.test(line));
  const first = paragraphs.find((line) => line.length >= 40) ?? paragraphs.find(Boolean);
  if (!first) return lineOfText(body, SUMMARY_LIMIT);
  return shorten(first.replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/\*\*|`/g, ""), SUMMARY_LIMIT);
};
