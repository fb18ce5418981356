// XPaths of elements, and elements by XPath. XPath does not cross frames and shadow roots: ` >> ` enters either. In a shadow
// root, where browsers have no XPath, a path consists only of steps /tag[n].
const INTO = " >> ";
const SNAPSHOT = 7;
const PLAIN_STEPS = /^(\/([a-z][a-z0-9-]*|\*)(\[[1-9][0-9]*\])?)+$/;
const PLAIN_TAG = /^[a-z][a-z0-9-]*$/;
const HTML = "http://www.w3.org/1999/xhtml";

const namespaceOf = getter(Element.prototype, "namespaceURI");
const isConnected = getter(Node.prototype, "isConnected");
const setAttr = method(Element.prototype, "setAttribute");
const dropAttr = method(Element.prototype, "removeAttribute");
const evaluatePath = method(Document.prototype, "evaluate");
const itemOf = method(XPathResult.prototype, "snapshotItem");
const lengthOf = getter(XPathResult.prototype, "snapshotLength");

// Return whether an element is still in the document, or in a frame or a shadow root of it.
const isHere = (element) => {
  for (let node = element; isConnected(node); ) {
    const root = rootNodeOf(node);
    if (root === document) return true;
    node = nodeKind(root) === FRAGMENT ? hostOf(root) : viewOf(root)?.frameElement;
    if (!node) return false;
  }
  return false;
};

const childElements = (parent) => {
  const found = [];
  for (let child = firstChild(parent); child; child = nextSibling(child)) if (nodeKind(child) === ELEMENT) found.push(child);
  return found;
};
const stepName = (element) => (namespaceOf(element) === HTML && PLAIN_TAG.test(tagOf(element)) ? tagOf(element) : "*");

const stepOf = new Map();
const computeSteps = (parent) => {
  const counts = new Map();
  childElements(parent).forEach((child, at) => {
    const count = (counts.get(tagOf(child)) ?? 0) + 1;
    counts.set(tagOf(child), count);
    const name = stepName(child);
    stepOf.set(child, name === "*" ? `/*[${at + 1}]` : `/${name}[${count}]`);
  });
};
const idPath = (element, root) => {
  const id = attr(element, "id");
  if (!id || nodeKind(root) !== DOCUMENT || /["\s]/.test(id) || id.length > 100) return null;
  return all(root, `#${CSS.escape(id)}`).length === 1 ? `//*[@id="${id}"]` : null;
};

const pathOf = (element) => {
  const root = rootNodeOf(element);
  let path = "";
  for (let node = element; node && node !== root; node = parentOf(node)) {
    const byId = idPath(node, root);
    if (byId !== null) {
      path = byId + path;
      break;
    }
    if (!stepOf.has(node)) computeSteps(parentOf(node));
    path = stepOf.get(node) + path;
  }
  const outer = nodeKind(root) === FRAGMENT ? hostOf(root) : viewOf(root)?.frameElement;
  return outer ? pathOf(outer) + INTO + path : path;
};

const byPlainSteps = (root, path) => {
  if (!PLAIN_STEPS.test(path)) throw new DOMException("only plain steps in a shadow root", "SyntaxError");
  let found = [root];
  for (const [, name, position] of path.matchAll(/\/([a-z0-9*-]+)(?:\[(\d+)\])?/g)) {
    found = found.flatMap((parent) => {
      const named = childElements(parent).filter((child) => name === "*" || tagOf(child) === name);
      return position ? named.slice(position - 1, Number(position)) : named;
    });
  }
  return found;
};
const byXPath = (root, path) => {
  try {
    const result = evaluatePath(root, path, root, null, SNAPSHOT, null);
    return Array.from({ length: lengthOf(result) }, (_, at) => itemOf(result, at));
  } catch {
    throw new DOMException("no XPath of elements", "SyntaxError"); // for example a number, or an unknown prefix
  }
};
const byPath = (path) => {
  let roots = [document];
  let found = [];
  for (const piece of path.split(INTO)) {
    found = roots.flatMap((root) => (nodeKind(root) === DOCUMENT ? byXPath : byPlainSteps)(root, piece.trim()))
      .filter((node) => nodeKind(node) === ELEMENT);
    roots = found.map((element) => shadowOf(element) ?? innerDocument(element)).filter(Boolean);
  }
  return [...new Set(found)];
};
