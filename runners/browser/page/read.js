// Read one document in one call: wait until it has settled, then extract. Returns JSON text.
const READABLE_TYPES = /^(text\/|application\/(json|xml|javascript|[a-z0-9.+-]*\+(json|xml))$)/;
const HTML_TYPES = new Set(["text/html", "application/xhtml+xml"]);

const ODD = /\\u(00[01]|d[89a-f])|\x7f/; // control characters and lone surrogates, as JSON escapes them

const asJson = (result, secrets) => {
  const json = JSON.stringify(result);
  if (!secrets.length && !ODD.test(json)) return json;
  return JSON.stringify(result, (key, value) =>
    typeof value === "string" ? masked(value.toWellFormed().replace(CONTROL, ""), secrets) : value);
};

const TITLE_LIMIT = 300;
const SHOWN_LIMIT = 300; // characters of a page on which a condition did not become true
const SUMMARY_SOURCE = 1000; // characters of content that are read when only the summary needs them

// A text document (plain text, JSON, XML, source code), shown by the browser's built-in viewer.
const readText = ({ content, pageInfo, maxContentLength }) => {
  const viewer = bodyOf(document) && one(document, "pre");
  const source = one(document, "#webkit-xml-viewer-source-xml > *");
  const text = viewer ? rawText(viewer) : new XMLSerializer().serializeToString(source ?? document);
  const shortened = cut(text, maxContentLength);
  const title = titleOf(document) || decodeURIComponent(here.pathname.split("/").pop() || here.host);
  const page = { url: location.href, title, type: "document", summary: shorten(collapse(text.slice(0, 1000)).trim(), SUMMARY_LIMIT) };
  return {
    url: location.href, title, pageType: httpStatus() >= 400 ? "error" : "document", elementCount: 0, contentSections: 1,
    content: content ? { sections: [{ heading: "", level: 0, text: shortened }], truncated: shortened.length < text.length } : null,
    pageInfo: pageInfo ? { page, elements: [], totalElements: 0, truncated: false } : null,
    httpStatus: httpStatus(),
  };
};

const readHtml = (extract) => {
  const body = bodyOf(document) ?? rootOf(document) ?? new DOMParser().parseFromString("", "text/html").body;
  const roots = findRoots(document);
  const secrets = findSecrets(roots.map(({ root }) => root));
  const boxes = boxesOf(roots);
  const main = findMain(body);
  const limit = extract.content ? extract.maxContentLength : SUMMARY_SOURCE;
  const { sections, truncated, count } = readContent(body, main, secrets, limit);
  const title = shorten(collapse(titleOf(document)).trim(), TITLE_LIMIT) || sections.find((section) => section.level > 0)?.heading || "";
  const type = pageType(body, main, httpStatus());
  const result = {
    url: location.href, title, pageType: type, elementCount: boxes.length, contentSections: count,
    content: extract.content ? { sections, truncated } : null, pageInfo: null, httpStatus: httpStatus(),
  };
  if (extract.pageInfo) {
    result.pageInfo = {
      page: { url: location.href, title, type, summary: summaryOf(body, sections) },
      elements: boxes.slice(0, extract.maxElements).map((box) => describe(box, secrets)),
      totalElements: boxes.length,
      truncated: boxes.length > extract.maxElements,
    };
  }
  return [result, secrets.values];
};

const readDocument = (extract) => {
  const type = contentTypeOf(document);
  if (HTML_TYPES.has(type)) return readHtml(extract);
  return READABLE_TYPES.test(type) ? [readText(extract), []] : [null, []];
};

const read = async ({ settle: limits, waitFor: condition, extract }) => {
  const settled = await settle(limits);
  if (settled === "unparsed") return asJson({ outcome: "unparsed" }, []);
  try {
    const changing = condition ? await waitFor(condition) : null;
    if (changing) {
      const [shown, hidden] = readDocument({ content: true, pageInfo: false, maxContentLength: SHOWN_LIMIT });
      const text = (shown?.content.sections ?? []).map((section) => `${section.heading}\n${section.text}`).join("\n").trim();
      return asJson({ outcome: "unmet", settled, shown: cut(text, SHOWN_LIMIT), changing }, hidden);
    }
  } catch (error) {
    if (error instanceof DOMException && error.name === "SyntaxError") return asJson({ outcome: "bad_selector" }, []);
    throw error;
  }
  const [page, secrets] = readDocument(extract);
  if (page === null) return asJson({ outcome: "unreadable", contentType: contentTypeOf(document) }, []);
  return asJson({ outcome: "read", settled, page }, secrets);
};
