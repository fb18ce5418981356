globalThis.continuityRead = async (given) => {
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
const USABLE_WITHOUT_ROLE = [
"a[href]", "area[href]", "button", "input:not([type=hidden])", "select", "textarea", "summary", "[onclick]:not(form)",
"[contenteditable='']", "[contenteditable=true i]", "[contenteditable=plaintext-only i]", "audio[controls]", "video[controls]",
].join(",");
const USABLE = `${USABLE_WITHOUT_ROLE},[role]:not(form)`;
const USABLE_ROLES = new Set([
"button", "link", "checkbox", "radio", "switch", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "option",
"treeitem", "combobox", "listbox", "textbox", "searchbox", "slider", "spinbutton",
]);
const INPUT_TYPES = { text: "textbox", search: "searchbox", range: "slider", submit: "button", reset: "button", image: "button" };
const LABEL_LIMIT = 120;
const VALUE_LIMIT = 200;
const OPTIONS_LIMIT = 20;
const findRoots = (root, x = window.scrollX, y = window.scrollY, found = []) => {
found.push({ root, x, y });
const elements = all(root, ":not(form)"); // a form has no shadow root, and its fields may shadow its properties
for (let index = 0; index < elements.length; index += 1) {
const shadow = elements[index].shadowRoot ?? CLOSED?.get(elements[index]);
if (shadow) findRoots(shadow, x, y, found);
}
for (const frame of all(root, "iframe,frame")) {
const inner = innerDocument(frame);
if (!inner || !bodyOf(inner)) continue;
const box = boxOf(frame);
findRoots(inner, x + box.x + frame.clientLeft, y + box.y + frame.clientTop, found);
}
return found;
};
const firstWord = (text) => text.trim().split(/\s+/)[0].toLowerCase();
const typeOfElement = (element) => {
const role = attr(element, "role");
if (role) return firstWord(role);
const tag = tagOf(element);
if (tag === "a" || tag === "area") return "link";
if (tag === "input") return INPUT_TYPES[element.type] ?? element.type;
if (tag === "select") return element.multiple || element.size > 1 ? "listbox" : "combobox";
if (tag === "textarea") return "textbox";
if (tag === "summary") return "disclosure";
if (own(element, "isContentEditable")) return "textbox";
return ["button", "audio", "video"].includes(tag) ? tag : "clickable";
};
const TEXT_IS_VALUE = new Set(["textbox", "searchbox", "combobox", "listbox"]);
const labelText = (text) => shorten(collapse(text ?? "").trim(), LABEL_LIMIT);
const labelWords = (label) => lineOfText(label, LABEL_LIMIT) || rawText(label);
const labelOf = (element, type, names) => {
if (type === "link" && !names.some((name) => name.startsWith("aria-"))) {
const text = lineOfText(element, LABEL_LIMIT);
if (text) return text;
}
const named = fieldLabels(element, labelWords);
const label = labelText(attr(element, "aria-label")) || labelText(named.join(" "));
if (label) return label;
if (tagOf(element) === "input" && type === "button") return labelText(element.value || element.alt || element.type);
const text = TEXT_IS_VALUE.has(type) ? "" : lineOfText(element, LABEL_LIMIT);
if (text) return text;
const inside = all(element, "[aria-label],[title],svg title,img[alt]");
const fromInside = [...inside].map((node) => attr(node, "aria-label") || attr(node, "title") || attr(node, "alt") || rawText(node));
return labelText(attr(element, "placeholder")) || labelText(attr(element, "title")) || labelText(fromInside.find(Boolean)) ||
labelText(attr(element, "alt")) || labelText(attr(element, "name"));
};
const ariaStates = (element, state) => {
for (const name of ["checked", "selected", "expanded", "pressed"]) {
const value = attr(element, `aria-${name}`);
if (value === "true" || value === "false" || value === "mixed") state[name] = value === "mixed" ? value : value === "true";
}
for (const name of ["disabled", "required", "readonly", "invalid"]) {
if (attr(element, `aria-${name}`) === "true") state[name] = true;
}
const current = attr(element, "aria-current");
if (current && current !== "false") state.current = true;
};
const fieldStates = (element, state, type) => {
if (element.disabled || matches(element, ":disabled")) state.disabled = true;
if (element.required) state.required = true;
if (element.readOnly && type !== "checkbox" && type !== "radio") state.readonly = true;
if (["checkbox", "radio", "switch"].includes(type) && tagOf(element) === "input") {
state.checked = element.indeterminate ? "mixed" : element.checked;
}
if (tagOf(element) !== "select") return;
const options = [...element.options];
state.options = options.slice(0, OPTIONS_LIMIT).map((option) => shorten(collapse(option.label).trim(), 60));
if (options.length > OPTIONS_LIMIT) state.moreOptions = options.length - OPTIONS_LIMIT;
};
const HAS_NO_VALUE = new Set(["checkbox", "radio", "button", "switch"]);
const valueState = (element, type, secrets) => {
if (!matches(element, FIELDS) || HAS_NO_VALUE.has(type)) return {};
const chosen = tagOf(element) === "select" ? [...element.selectedOptions].map((option) => option.label).join(", ") : null;
const value = chosen ?? fieldValue(element);
if (!value) return {};
if (secrets.fields.has(element)) return { value: MASK };
return { value: type === "file" ? value.split("\\").pop() : shorten(collapse(value).trim(), VALUE_LIMIT) };
};
const linkStates = (element, state) => {
const href = linkAddress(element);
if (href && href.length <= 500) state.href = href;
};
const stateOf = (element, type, names, secrets) => {
const state = {};
const tag = tagOf(element);
if (names.some((name) => name.startsWith("aria-"))) ariaStates(element, state);
if (tag === "a" || tag === "area") linkStates(element, state);
else fieldStates(element, state, type);
if (type === "disclosure") state.expanded = hasAttr(element.parentElement ?? element, "open");
if (secrets.fields.has(element) && state.options) delete state.options;
return type === "link" ? state : Object.assign(state, valueState(element, type, secrets));
};
const ids = (globalThis.continuityIds ??= { next: 1, of: new WeakMap() });
const idOf = (element) => {
if (!ids.of.has(element)) ids.of.set(element, `e${ids.next++}`);
return ids.of.get(element);
};
const hasIdleRole = (element) => {
const role = attr(element, "role");
if (role === null || USABLE_ROLES.has(firstWord(role))) return false;
return !matches(element, USABLE_WITHOUT_ROLE);
};
const NATIVE = new Set(["a", "area", "button", "input", "select", "textarea", "summary"]);
const isRepeated = (element) => {
if (NATIVE.has(tagOf(element))) return false;
if (closest(element, "a[href],button") !== null) return true;
return hasAttr(element, "onclick") && !hasAttr(element, "role") && one(element, "a[href],button,input,select,textarea") !== null;
};
const boundsOf = (element, x, y) => {
const box = boxOf(element);
const { width, height } = box;
if (width < 1 || height < 1) return null;
const bounds = { x: Math.round(box.x + x), y: Math.round(box.y + y), width: Math.round(width), height: Math.round(height) };
return bounds.x + width <= 0 || bounds.y + height <= 0 ? null : bounds;
};
const INERT = "[aria-hidden=true],[inert]";
const boxesOf = (roots, selector = USABLE, isWanted = () => true) => {
const found = [];
for (const { root, x, y } of roots) {
const someInert = one(root, INERT) !== null;
const elements = all(root, selector);
for (let index = 0; index < elements.length; index += 1) {
const element = elements[index];
const bounds = boundsOf(element, x, y);
if (bounds === null || !visible(element) || hasIdleRole(element) || isRepeated(element) || !isWanted(element)) continue;
if (someInert && closest(element, INERT) !== null) continue;
found.push({ element, bounds });
}
}
return found.sort((a, b) => a.bounds.y - b.bounds.y || a.bounds.x - b.bounds.x);
};
const describe = ({ element, bounds }, secrets) => {
const type = typeOfElement(element);
const names = attributeNames(element);
const label = labelOf(element, type, names);
return { id: idOf(element), type, label, bounds, state: stateOf(element, type, names, secrets) };
};
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
const glue = (before, piece, element) => {
if (!WORD_END.test(before) || !WORD_START.test(piece)) return before + piece;
return before + (getComputedStyle(element).display.startsWith("inline") ? "" : " ") + piece;
};
const clean = (text, style) => masked(collapse(text), style.secrets.values);
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
class Sections {
constructor(limit) {
this.list = [];
this.left = limit;
this.truncated = false;
this.current = null;
this.prefix = ""; // the start of each line of the current list item or quotation
this.lead = null; // the start of its first line instead: the bullet
this.wasTight = false;
}
open(heading, level) {
if (this.truncated) return;
const text = cut(heading, this.left);
this.left -= text.length;
this.truncated = text.length < heading.length;
this.begin(text, level);
this.prefix = "";
this.lead = null;
}
begin(heading, level) {
this.current = { heading, level, text: "" };
this.list.push(this.current);
}
add(text, tight = false) {
if (this.truncated || !text) return;
if (!this.current) this.begin("", 0);
const isTight = tight || this.prefix !== "" || this.lead !== null;
const between = isTight && this.wasTight ? "\n" : "\n\n";
const block = (this.lead ?? this.prefix) + this.continued(text);
const whole = this.current.text ? between + block : block;
const piece = cut(whole, this.left);
this.current.text += piece;
this.left -= piece.length;
this.truncated = piece.length < whole.length;
this.lead = null;
this.wasTight = isTight;
}
continued(text) {
if (this.prefix === "") return text;
return text.split("\n").map((line, index) => (index ? (this.prefix + line).trimEnd() : line)).join("\n");
}
within(indent, bullet, walk) {
const outer = this.prefix;
this.lead = outer + bullet;
this.prefix = outer + indent;
walk();
this.prefix = outer;
this.lead = null;
}
}
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
const PAGER = /(^|[\s_-])(pager|pagination|paginator|paging|page-?numbers?)([\s_-]|$)|分页|翻页/i;
const isPager = (element) =>
PAGER.test(`${nameOf(element)} ${attr(element, "aria-label") ?? ""}`) ||
(one(element, "a[rel~=next],a[rel~=prev]") !== null && rawText(element).length < 300);
const MAY_BE_CLUTTER = new Set(["div", "section", "ul", "ol", "form", "dialog", "p", "table"]);
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
const QUIET_MS = 34; // two frames
const LONGEST_CHANGE_MS = 1000; // changes are ignored after this, because some pages (a clock) never stop changing
const STABLE_MS = 500;
const EMPTY_QUIET_MS = 400;
const sleep = (ms) => globalThis.continuitySleep?.(ms) ?? scheduler.postTask(() => {}, { delay: ms });
const nextTask = () => scheduler.postTask(() => {}, { priority: "user-blocking" });
const now = () => performance.now();
const isTrueInPage = (question) => !dispatch(document, new Event(`${globalThis.continuityToken}${question}`, { cancelable: true }));
const isBusy = () => isTrueInPage("busy") || refreshesSoon();
const refreshesSoon = () => {
const rule = one(document, "meta[http-equiv=refresh i]");
const [, delay, address] = (rule && attr(rule, "content")?.match(/^\s*([\d.]+)\s*[;,]\s*(?:url\s*=)?\s*(.+)$/i)) ?? [];
return delay !== undefined && Number(delay) <= 1 && URL.parse(address.replace(/^['"]|['"]$/g, ""), location.href)?.href !== location.href;
};
const until = async (target, event, isDone, deadline) => {
if (isDone()) return true;
let onEvent;
const signal = new Promise((resolve) => {
onEvent = resolve;
listen(target, event, resolve, { once: true });
});
await Promise.race([signal, sleep(Math.max(0, deadline - now()))]);
unlisten(target, event, onEvent);
return isDone();
};
const isParsed = () => readyState(document) !== "loading";
const isLoaded = () => readyState(document) === "complete";
const FILLED = 30;
const looksUnfilled = () => {
const body = bodyOf(document);
if (body === null || tagOf(body) !== "body" || one(document, "script") === null) return false;
const first = one(body, "p,li,h1,h2,td");
if (first && rawText(first).trim().length >= FILLED && visible(first)) return false;
return lineOfText(body, 100).length < FILLED;
};
const lastArrival = () => {
const entries = performance.getEntriesByType("resource");
return entries.length ? entries[entries.length - 1].responseEnd : 0;
};
const quiet = async (deadline, quietMs, isFilled) => {
const began = now();
let last = began;
const watcher = new MutationObserver(() => {
if (now() - began < LONGEST_CHANGE_MS) last = now();
});
watcher.observe(document, { childList: true, characterData: true, subtree: true });
try {
while (now() < deadline) {
if (isBusy()) last = now();
const needed = isFilled() ? quietMs : EMPTY_QUIET_MS;
if (now() - Math.max(last, lastArrival()) >= needed) return "idle";
await sleep(16);
}
return isBusy() ? "network" : "changing";
} finally {
watcher.disconnect();
}
};
const settle = async ({ parseMs, idleMs, stays }) => {
if (stays) isTrueInPage("stays"); // resets the page's pending navigation
if (!(await until(document, "DOMContentLoaded", isParsed, now() + parseMs))) return "unparsed";
const deadline = now() + idleMs;
if (!(await until(window, "load", isLoaded, deadline))) return "loading";
await nextTask(); // let the page's own load listeners run first
const unfilled = looksUnfilled();
if (!unfilled && !isTrueInPage("ever") && !isBusy()) return "idle";
return quiet(deadline, QUIET_MS, unfilled ? () => !looksUnfilled() : () => true);
};
const CONDITIONS = {
selector: (value) => findRoots(document).some(({ root }) => [...all(root, value)].some(visible)),
urlContains: (value) => location.href.includes(value),
textIncludes: (value) => (bodyOf(document)?.innerText ?? rawText(rootOf(document) ?? new Text(""))).includes(value),
};
const REPLACED_TIMES = 3;
const REPLACED_MS = 1000;
const MAX_CHANGING = 3;
const untilStable = async (deadline) => {
const [began, changes] = [now(), new Map()];
let busyAt = began;
const repeats = ({ times, firstAt, at, isReplaced }) => isReplaced && times >= REPLACED_TIMES && at - firstAt >= REPLACED_MS;
const watcher = new MutationObserver((records) => {
for (const element of new Set(records.map(({ target }) => (nodeKind(target) === TEXT ? parentElementOf(target) : target)))) {
if (!element) continue;
const [text, before] = [rawText(element) ?? "", changes.get(element)];
const isReplaced = before === undefined || (before.isReplaced && !(before.text && text.startsWith(before.text)));
changes.set(element, { text, isReplaced, times: (before?.times ?? 0) + 1, firstAt: before?.firstAt ?? now(), at: now() });
}
});
watcher.observe(document, { childList: true, characterData: true, subtree: true });
try {
while (now() < deadline) {
if (isBusy()) busyAt = now();
const changedAt = [...changes.values()].reduce((last, change) => (repeats(change) ? last : Math.max(last, change.at)), began);
if (now() - Math.max(changedAt, busyAt, lastArrival()) >= STABLE_MS) return null;
await sleep(34);
}
const latest = [...changes].filter(([, { at }]) => now() - at < 2 * REPLACED_MS).sort(([, a], [, b]) => b.at - a.at);
return latest.slice(0, MAX_CHANGING).map(([element]) => lineOfText(element, 80)).filter(Boolean);
} finally {
watcher.disconnect();
}
};
const waitFor = async ({ type, value, timeoutMs }) => {
const deadline = now() + timeoutMs;
if (type === "stable") return untilStable(deadline);
while (!CONDITIONS[type](value)) {
if (now() >= deadline) return [];
await sleep(Math.min(50, Math.max(1, deadline - now())));
}
return null;
};
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
return read(given);
};
