// The markup of the page or of one of its elements, including shadow roots; values of secret fields are masked.
const outerOf = getter(Element.prototype, "outerHTML");
const innerOf = getter(Element.prototype, "innerHTML");
const wholeOf = method(Element.prototype, "getHTML");

const markupOf = (element) => {
  const roots = openRoots(element).filter((root) => nodeKind(root) === FRAGMENT);
  const outer = outerOf(element);
  if (!roots.length) return outer;
  const close = `</${tagOf(element)}>`;
  const head = outer.slice(0, outer.length - close.length - innerOf(element).length);
  return head + wholeOf(element, { shadowRoots: roots }) + close;
};

const openRoots = (root, found = []) => {
  found.push(root);
  for (const element of nodeKind(root) === ELEMENT ? [root, ...all(root, "*")] : all(root, "*")) {
    const inner = shadowOf(element);
    if (inner) openRoots(inner, found);
  }
  return found;
};

const escaped = (value) => value.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const elementAt = (xpath) => {
  if (xpath === null) return [rootOf(document), "empty"];
  try {
    return [byPath(xpath)[0], "no_match"];
  } catch {
    return [null, "bad_xpath"];
  }
};
const markup = ({ xpath, maxLength }) => {
  const [element, problem] = elementAt(xpath);
  if (!element) return { problem };
  const { values } = findSecrets(findRoots(document).map(({ root }) => root));
  const secret = [...new Set([...values, ...values.map(escaped), ...values.map((value) => value.replaceAll("&", "&amp;"))])];
  const type = xpath === null && document.doctype ? `${new XMLSerializer().serializeToString(document.doctype)}\n` : "";
  const html = markupOf(element);
  return html.length > maxLength ? { length: html.length } : { html: (type + masked(html, secret)).toWellFormed() };
};
