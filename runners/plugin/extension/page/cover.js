globalThis.continuityCover = async (given) => {
"use strict";
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
const visible = (element) =>
isRendered(element, WITH_VISIBILITY) || getComputedStyle(element).display === "contents";
const NO_TEXT = new Set([
"script", "style", "noscript", "template", "head", "link", "meta", "svg", "math", "canvas", "video", "audio",
"object", "embed", "map", "datalist", "select", "textarea", "input", "progress", "meter",
]);
const innerDocument = (element) => {
const inner = FRAME_DOCUMENT[tagOf(element)]?.(element);
return inner && viewOf(inner)?.origin === window.origin ? inner : null; // the isolated world can access any origin
};
const renderedParent = (node) => {
if (nodeKind(node) !== ELEMENT) return node;
if (!(tagOf(node) in FRAME_DOCUMENT)) return shadowOf(node) ?? node;
const inner = innerDocument(node);
return inner && bodyOf(inner);
};
const DEEPEST = 600; // the parser nests no deeper; a script can, and would overflow the reader's stack
let depth = 0;
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
const cut = (text, limit) => {
if (text.length <= limit) return text;
if (/^[\x20-\x7e]+$/.test(text.slice(Math.max(0, limit - 1), limit + 1))) return text.slice(0, limit);
const from = Math.max(0, limit - 1024);
const characters = new Intl.Segmenter().segment(text.slice(from, limit + 64)); // costs a millisecond
return text.slice(0, from + characters.containing(limit - from).index);
};
const shorten = (text, limit) => {
if (text.length <= limit) return text;
const head = cut(text, limit - 1);
const space = head.lastIndexOf(" ");
return `${space > limit * 0.6 ? head.slice(0, space) : head}…`;
};
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
const MASK = "***";
const SECRET_PARTS = /password|passwd|passphrase|passcode|secret(?!ar)|token(?!i[sz])|api ?key|credential|密码|密碼|口令|密钥|秘钥|密鑰|金鑰|令牌|权杖|權杖|私钥|私鑰|验证码|驗證碼|校验码|动态码|动态密码|安全码|凭证|凭据|憑證|助记词|授权码/i;
const SECRET_WORDS = /\b(pass|pwd|pw|psw|pin|pin ?code|otp|totp|one time code|2fa|mfa|cvv2?|cvc2?|csc|cc csc|cc number|security code|verification code|recovery code|backup code|seed phrase|mnemonic|(access|auth|private|secret|encryption|signing|license|session|account|shared) ?key|authorization|bearer|jwt|csrf|xsrf|session ?id)\b/i;
const looksSecret = (name) => {
const words = name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/[\s_\-.:[\]/]+/g, " ");
return SECRET_PARTS.test(words) || SECRET_WORDS.test(words);
};
const fieldLabels = (element, textOf = rawText) => {
const labels = [...(own(element, "labels") ?? [])].map(textOf);
const ids = (attr(element, "aria-labelledby") ?? "").split(/\s+/).filter(Boolean);
const named = ids.map((id) => rootNodeOf(element).getElementById?.(id)).filter(Boolean).map(textOf);
return [...labels, ...named];
};
const NAMING_ATTRIBUTES = ["type", "name", "id", "autocomplete", "aria-label", "placeholder", "title", "data-testid"];
const isSecretField = (element) => {
if (attr(element, "type")?.toLowerCase() === "password") return true;
const names = NAMING_ATTRIBUTES.map((name) => attr(element, name)).filter(Boolean);
if ([...names, ...fieldLabels(element)].some((name) => looksSecret(name.slice(0, 200)))) return true;
return !["none", ""].includes(getComputedStyle(element).webkitTextSecurity ?? "none");
};
const FIELDS = "input:not([type=hidden]):not([type=button]):not([type=submit]):not([type=reset]):not([type=image])," +
"textarea,select,[contenteditable=''],[contenteditable=true i],[contenteditable=plaintext-only i],[role=textbox],[role=searchbox]";
const isNativeField = (element) => ["input", "textarea", "select"].includes(tagOf(element));
const fieldValue = (element) => (isNativeField(element) ? element.value : lineOfText(element, 2000)) ?? "";
const findSecrets = (roots) => {
const fields = new Set();
const values = new Set();
for (const root of roots) {
for (const element of all(root, FIELDS)) {
if (!isSecretField(element)) continue;
fields.add(element);
const value = fieldValue(element).trim();
if (value.length >= 4 && !["checkbox", "radio"].includes(attr(element, "type"))) values.add(value);
}
}
return { fields, values: [...values].sort((a, b) => b.length - a.length) };
};
const masked = (text, values) => {
for (const value of values) {
if (!text.includes(value)) continue;
if (value.length >= 8) {
text = text.replaceAll(value, MASK);
continue;
}
const literal = value.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
text = text.replace(new RegExp(`(?<![A-Za-z0-9])${literal}(?![A-Za-z0-9])`, "g"), MASK);
}
return text;
};
const COVERED = new Map((globalThis.continuityCovered ??= []));
const PROPERTY = "-webkit-text-security";
const openRoots = (root, found = []) => {
found.push(root);
for (const element of all(root, "*")) {
const inner = shadowOf(element) ?? innerDocument(element);
if (inner) openRoots(inner, found);
}
return found;
};
const cover = (covered) => {
if (covered) {
for (const element of findSecrets(openRoots(document)).fields) {
COVERED.set(element, element.style.getPropertyValue(PROPERTY));
element.style.setProperty(PROPERTY, "disc", "important");
if (tagOf(element) === "select") element.style.setProperty("color", "transparent", "important");
}
} else {
for (const [element, before] of COVERED) {
element.style.setProperty(PROPERTY, before);
if (tagOf(element) === "select") element.style.removeProperty("color");
}
COVERED.clear();
}
globalThis.continuityCovered = [...COVERED];
return COVERED.size;
};
return cover(given);
};
