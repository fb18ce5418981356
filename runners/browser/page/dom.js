// Access to the document for all page scripts. They run in an isolated world, which a page's changes to built-ins do not
// affect. But named fields (<input name="childNodes">) shadow the properties of <form> and document in every world, so
// every property of a page's node is read through the prototype.
const uncurry = (fn) => Function.prototype.call.bind(fn);
const getter = (proto, name) => uncurry(Object.getOwnPropertyDescriptor(proto, name).get);
const method = (proto, name) => uncurry(proto[name]);

const ELEMENT = 1;
const TEXT = 3;
const DOCUMENT = 9;
const FRAGMENT = 11;

const nodeKind = getter(Node.prototype, "nodeType");
const firstChild = getter(Node.prototype, "firstChild");
const parentElementOf = getter(Node.prototype, "parentElement");
const nextSibling = getter(Node.prototype, "nextSibling");
const rawText = getter(Node.prototype, "textContent");
const dataOf = getter(CharacterData.prototype, "data");
const positionOf = method(Node.prototype, "compareDocumentPosition");
const parentOf = getter(Node.prototype, "parentNode");
const rootNodeOf = method(Node.prototype, "getRootNode");
const documentOf = getter(Node.prototype, "ownerDocument");
const isAround = method(Node.prototype, "contains");
const tagOf = getter(Element.prototype, "localName");
const openShadowOf = getter(Element.prototype, "shadowRoot");
const slotOf = getter(Element.prototype, "assignedSlot");
const hostOf = getter(ShadowRoot.prototype, "host");
// Closed shadow roots, which runners/browser/reading/shadow_dom.py stored here.
const CLOSED = globalThis.continuityClosed ?? null;
const shadowOf = CLOSED === null ? openShadowOf : (element) => openShadowOf(element) ?? CLOSED.get(element) ?? null;
const attr = method(Element.prototype, "getAttribute");
const hasAttributes = method(Element.prototype, "hasAttributes");
const attributeNames = method(Element.prototype, "getAttributeNames");
const hasAttr = method(Element.prototype, "hasAttribute");
const closest = method(Element.prototype, "closest");
const matches = method(Element.prototype, "matches");
const boxOf = method(Element.prototype, "getBoundingClientRect");
const rectsOf = method(Element.prototype, "getClientRects");
const isRendered = method(Element.prototype, "checkVisibility");
const assignedTo = method(HTMLSlotElement.prototype, "assignedNodes");
// Properties of any element but a form, whose properties may be shadowed by its fields.
const own = (element, name) => (tagOf(element) === "form" ? undefined : element[name]);
const FRAME_DOCUMENT = {
  iframe: getter(HTMLIFrameElement.prototype, "contentDocument"),
  frame: getter(HTMLFrameElement.prototype, "contentDocument"),
};
const bodyOf = getter(Document.prototype, "body");
const rootOf = getter(Document.prototype, "documentElement");
const readyState = getter(Document.prototype, "readyState");
const viewOf = getter(Document.prototype, "defaultView");
const titleOf = getter(Document.prototype, "title");
const contentTypeOf = getter(Document.prototype, "contentType");
const dispatch = method(EventTarget.prototype, "dispatchEvent");
const listen = method(EventTarget.prototype, "addEventListener");
const unlisten = method(EventTarget.prototype, "removeEventListener");

const QUERY_ALL = {
  [ELEMENT]: method(Element.prototype, "querySelectorAll"),
  [DOCUMENT]: method(Document.prototype, "querySelectorAll"),
  [FRAGMENT]: method(DocumentFragment.prototype, "querySelectorAll"),
};
const all = (root, selector) => QUERY_ALL[nodeKind(root)](root, selector);
const one = (root, selector) => all(root, selector)[0] ?? null;

const WITH_VISIBILITY = { visibilityProperty: true };
// An element with display: contents has no box of its own, but its children have.
const visible = (element) =>
  isRendered(element, WITH_VISIBILITY) || getComputedStyle(element).display === "contents";

// Elements whose content is not text for people.
const NO_TEXT = new Set([
  "script", "style", "noscript", "template", "head", "link", "meta", "svg", "math", "canvas", "video", "audio",
  "object", "embed", "map", "datalist", "select", "textarea", "input", "progress", "meter",
]);

// The document inside a same-origin frame, or null (another origin, or not a frame).
const innerDocument = (element) => {
  const inner = FRAME_DOCUMENT[tagOf(element)]?.(element);
  return inner && viewOf(inner)?.origin === window.origin ? inner : null; // the isolated world can access any origin
};

// The node whose children are rendered in place of a node's own: its shadow root, or the document of its frame.
const renderedParent = (node) => {
  if (nodeKind(node) !== ELEMENT) return node;
  if (!(tagOf(node) in FRAME_DOCUMENT)) return shadowOf(node) ?? node;
  const inner = innerDocument(node);
  return inner && bodyOf(inner);
};

const DEEPEST = 600; // the parser nests no deeper; a script can, and would overflow the reader's stack
let depth = 0;

// Call `visit` for each child of a node as it is rendered, until it returns STOP.
const STOP = Symbol("stop");
const eachChild = (node, visit) => {
  if (depth >= DEEPEST) return;
  depth += 1;
  try {
    const assigned = nodeKind(node) === ELEMENT && tagOf(node) === "slot" ? assignedTo(node, { flatten: true }) : [];
    if (assigned.length) {
      assigned.some((child) => visit(child) === STOP);
      return;
    }
    const parent = renderedParent(node);
    for (let child = parent && firstChild(parent); child; child = nextSibling(child)) {
      if (visit(child) === STOP) break;
    }
  } finally {
    depth -= 1;
  }
};

const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;
const httpStatus = () => performance.getEntriesByType("navigation")[0]?.responseStatus || null;
const collapse = (text) => text.replace(/[\u200b\u2060\ufeff\u00ad]/g, "").replace(/\s+/g, " ");

// Cut to at most `limit` UTF-16 units without splitting a grapheme cluster.
const cut = (text, limit) => {
  if (text.length <= limit) return text;
  if (/^[\x20-\x7e]+$/.test(text.slice(Math.max(0, limit - 1), limit + 1))) return text.slice(0, limit);
  const from = Math.max(0, limit - 1024);
  const characters = new Intl.Segmenter().segment(text.slice(from, limit + 64)); // costs a millisecond
  return text.slice(0, from + characters.containing(limit - from).index);
};

// Cut a label or a summary, at a word boundary if possible, with an ellipsis.
const shorten = (text, limit) => {
  if (text.length <= limit) return text;
  const head = cut(text, limit - 1);
  const space = head.lastIndexOf(" ");
  return `${space > limit * 0.6 ? head.slice(0, space) : head}…`;
};

// All visible text below a node on one line, at most about `limit` characters.
const lineOfText = (node, limit = 200) => {
  let line = "";
  const visit = (child) => {
    if (line.length > limit * 2) return STOP;
    const kind = nodeKind(child);
    if (kind === TEXT) line += dataOf(child);
    if (kind !== ELEMENT) return undefined;
    const tag = tagOf(child);
    if (tag === "img") line += ` ${attr(child, "alt") ?? ""} `;
    if (tag === "br") line += " ";
    if (NO_TEXT.has(tag) || attr(child, "aria-hidden") === "true" || !visible(child)) return undefined;
    const isBlock = !getComputedStyle(child).display.startsWith("inline");
    line += isBlock ? " " : "";
    eachChild(child, visit);
    line += isBlock ? " " : "";
    return undefined;
  };
  if (nodeKind(node) === TEXT) visit(node);
  else eachChild(node, visit);
  return shorten(collapse(line).trim(), limit);
};

// The shortest URL that resolves correctly against the page's own URL; "" if it is not a link to follow.
const here = new URL(location.href);
const site = `${here.origin}/`;
const self = here.pathname + here.search;
const folder = here.pathname.slice(0, here.pathname.lastIndexOf("/") + 1);
const shortAddress = (address) => {
  if (!/^(https?|mailto|tel|ftp):/.test(address)) return "";
  if (!address.startsWith(site)) return address;
  const path = address.slice(site.length - 1);
  if (path.startsWith(self) && (path.length === self.length || path[self.length] === "#")) {
    return path.slice(self.length) || "#";
  }
  const name = path.slice(folder.length);
  return path.startsWith(folder) && /^[^/:?#]+(?=[/?#]|$)/.test(name) ? name : path;
};
const baseOf = getter(Node.prototype, "baseURI");
const linkAddress = (anchor) => {
  const address = anchor.href; // an SVG link has an object here
  if (typeof address === "string") return shortAddress(address);
  return shortAddress(URL.parse(attr(anchor, "href") ?? "", baseOf(anchor))?.href ?? "");
};
