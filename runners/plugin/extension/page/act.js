globalThis.continuityAct = async (given) => {
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
const SAME_MEANING = [
["search", "find", "lookup", "搜索", "搜寻", "搜尋", "查询", "查詢", "查找", "检索", "檢索"],
["login", "log in", "log on", "logon", "sign in", "signin", "登录", "登陆", "登錄", "登入"],
["logout", "log out", "log off", "sign out", "signout", "退出登录", "退出", "注销", "登出"],
["register", "sign up", "signup", "create account", "create an account", "注册", "註冊", "新规登录"],
["username", "user name", "user id", "userid", "login name", "用户名", "用戶名", "用户名称", "账号", "帐号", "账户名", "使用者名稱", "使用者名称", "帳號"],
["password", "passwd", "密码", "密碼", "口令"],
["email", "e mail", "mail address", "邮箱", "電子郵件", "电子邮件", "电子邮箱", "信箱", "邮箱地址", "email address", "e mail address"],
["phone", "telephone", "mobile", "cell phone", "phone number", "mobile number", "手机", "手机号", "手机号码", "电话", "电话号码", "電話", "手機"],
["submit", "提交", "送出"],
["send", "发送", "發送"],
["next", "next page", "下一页", "下页", "下一頁", "后页"],
["previous", "prev", "previous page", "上一页", "上页", "上一頁"],
["cancel", "取消"],
["ok", "confirm", "确定", "确认", "確定", "確認"],
["save", "保存", "儲存"],
["delete", "remove", "删除", "刪除", "移除"],
["edit", "编辑", "編輯"],
["close", "关闭", "關閉"],
["address", "地址"],
["date", "日期"],
["country", "国家", "國家"],
["city", "城市"],
["quantity", "qty", "数量", "數量"],
["add to cart", "add to basket", "加入购物车", "加入購物車"],
];
const SYMBOLS = { next: /^[›»>→⟩▶]+$/u, previous: /^[‹«<←⟨◀]+$/u, close: /^[×✕✖✗]$/u };
const STOP_WORDS = new Set(["the", "a", "an", "of", "to", "for", "your", "my", "please", "enter", "type", "in", "on", "here", "this"]);
const STOP_CHARACTERS = /请输入|请填写|请选择|請輸入|請選擇|您的|你的|我的|请|請|的/gu;
const KIND_WORDS = {
button: ["button", "btn", "按钮", "按鈕"],
link: ["link", "hyperlink", "链接", "鏈接", "連結"],
field: ["field", "input", "input field", "box", "input box", "text box", "textbox", "text field", "textarea", "输入框", "文本框", "輸入框", "输入栏", "字段", "框"],
checkbox: ["checkbox", "check box", "tick box", "复选框", "勾选框", "核取方塊"],
radio: ["radio", "radio button", "单选框", "单选按钮", "單選按鈕"],
choice: ["dropdown", "drop down", "select", "select box", "combobox", "combo box", "下拉框", "下拉菜单", "下拉列表", "选择框", "下拉選單"],
tab: ["tab", "选项卡", "标签页"],
};
const isLatin = (phrase) => /^[\x20-\x7e]+$/.test(phrase);
const anyOf = (phrases) => {
const longestFirst = [...phrases].sort((a, b) => b.length - a.length);
const latin = longestFirst.filter(isLatin).map((phrase) => phrase.replaceAll(" ", "[ ]"));
const other = longestFirst.filter((phrase) => !isLatin(phrase));
return new RegExp([`(?<![a-z0-9])(?:${latin.join("|")})(?![a-z0-9])`, ...other].join("|"), "gu");
};
const MEANING_OF = new Map(SAME_MEANING.flatMap((group) => group.map((phrase) => [phrase, group[0].replaceAll(" ", "")])));
const MEANINGS = anyOf(MEANING_OF.keys());
const KIND_OF = new Map(Object.entries(KIND_WORDS).flatMap(([kind, phrases]) => phrases.map((phrase) => [phrase, kind])));
const KINDS = anyOf(KIND_OF.keys());
const CJK_RUN = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]+/u;
const WORD = new RegExp(`${CJK_RUN.source}|[\\p{L}\\p{N}]+`, "gu");
const fold = (text) => {
const plain = text.normalize("NFKC").toLowerCase().replace(/[\u200b\u2060\ufeff\u00ad]/g, "");
const sign = Object.keys(SYMBOLS).find((name) => SYMBOLS[name].test(plain.trim()));
if (sign) return sign;
const bare = plain.normalize("NFD").replace(/([a-z])\p{M}+/gu, "$1").normalize("NFC");
return bare.replace(/[^\p{L}\p{N}]+/gu, " ").replace(/(?<=\p{Script=Han}) (?=\p{Script=Han})/gu, "").trim();
};
const tokensOf = (folded) => {
const unified = folded.replace(MEANINGS, (phrase) => ` ${MEANING_OF.get(phrase)} `);
const filtered = unified.replace(STOP_CHARACTERS, " ");
const tokens = [];
for (const [word] of filtered.matchAll(WORD)) {
if (!CJK_RUN.test(word)) {
if (!STOP_WORDS.has(word)) tokens.push(word);
} else if (word.length <= 2) tokens.push(word);
else for (let at = 0; at < word.length - 1; at += 1) tokens.push(word.slice(at, at + 2));
}
return tokens.length ? tokens : folded.split(" ").filter(Boolean);
};
const MAX_COMPARED = 400; // characters of a text that are compared; longer texts match nothing well
const wordsOf = (text) => {
const folded = fold(text.slice(0, MAX_COMPARED));
return { folded, tokens: tokensOf(folded) };
};
const queryOf = (text) => {
const whole = wordsOf(text);
const kinds = new Set();
const rest = whole.folded.replace(KINDS, (phrase) => {
kinds.add(KIND_OF.get(phrase));
return " ";
}).replace(/ +/g, " ").trim();
return { whole, kinds, rest: kinds.size ? wordsOf(rest) : whole };
};
const likeness = (one, other) => {
if (one === other) return 1;
const [short, long] = one.length < other.length ? [one, other] : [other, one];
return short.length >= 4 && isLatin(short) && long.startsWith(short) ? 0.8 : 0;
};
const holds = (text, query) =>
isLatin(query) ? ` ${text} `.includes(` ${query} `) : query !== "" && text.includes(query);
const similarity = (query, text) => {
if (!query.tokens.length || !text.tokens.length) return 0;
if (query.folded === text.folded) return 1;
let found = 0;
for (const token of query.tokens) found += Math.max(...text.tokens.map((other) => likeness(token, other)));
const share = Math.min(1, found / text.tokens.length);
const score = (found / query.tokens.length) ** 1.5 * (0.65 + 0.3 * share);
if (!holds(text.folded, query.folded)) return score;
return Math.max(score, 0.6 + 0.35 * (query.folded.length / text.folded.length));
};
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
const GOOD_ENOUGH = 0.5;
const MAX_CANDIDATES = 5;
const MENUS = "nav,[role=navigation],[role=menu],[role=menubar],[role=tablist]";
const WEIGHTS = { label: 1, name: 1, placeholder: 0.95, text: 1, role: 0.75, attribute: 0.6 };
const TEXT_BEFORE_FIELD_WEIGHT = 0.9;
const FIELD = `${FIELDS},[role=checkbox],[role=radio],[role=switch],[role=combobox]`;
const TOGGLES = new Set(["checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"]);
const TYPE_WORDS = {
search: "search", password: "password", email: "email", tel: "phone", url: "url website 网址", submit: "submit",
date: "date", number: "number 数字", file: "file upload 文件 上传",
};
const MAY_LOOK_CLICKABLE = "div,span,li,td,img,svg,p,label,b,i,em,strong,h1,h2,h3,h4";
const isTextField = (element) => matches(element, FIELDS) && !TOGGLES.has(typeOfElement(element));
const isFillable = (element) => isTextField(element) || TOGGLES.has(typeOfElement(element));
const isClickable = (element) => !isTextField(element) && !hasIdleRole(element);
const kindOf = (element) => {
const type = typeOfElement(element);
if (type === "button" || type === "link" || type === "radio" || type === "tab") return type;
if (type === "checkbox" || type === "switch") return "checkbox";
if (type === "combobox" || type === "listbox") return tagOf(element) === "input" ? "field" : "choice";
return isTextField(element) ? "field" : "button";
};
const textBefore = (element) => {
for (let node = element; node && !["form", "body", "fieldset"].includes(tagOf(node)); node = node.parentElement) {
let before = node.previousSibling;
while (before && !(nodeKind(before) === TEXT || nodeKind(before) === ELEMENT) ) before = before.previousSibling;
while (before) {
if (nodeKind(before) === ELEMENT && (matches(before, FIELD) || one(before, FIELD) !== null)) return "";
const text = nodeKind(before) === ELEMENT && !visible(before) ? "" : lineOfText(before, 80);
if (text) return text;
before = before.previousSibling;
}
if (node !== element && rawText(node).length > 200) return "";
}
return "";
};
const namedBy = (element) => {
const ids = (attr(element, "aria-labelledby") ?? "").split(/\s+/).filter(Boolean);
const texts = ids.map((id) => rootNodeOf(element).getElementById?.(id)).filter(Boolean).map(rawText);
return texts.join(" ") || attr(element, "aria-label") || "";
};
const imagesIn = (element) =>
[...all(element, "[aria-label],[title],svg title,img[alt]")].map((node) =>
attr(node, "aria-label") || attr(node, "alt") || attr(node, "title") || rawText(node)).join(" ");
const isInSearch = (element) => closest(element, "[role=search],search,form[action*=search i]") !== null;
const propertiesOf = (element) => {
const tag = tagOf(element);
const isField = isTextField(element) || TOGGLES.has(typeOfElement(element));
const isInputButton = tag === "input" && typeOfElement(element) === "button";
const labels = own(element, "labels") ? [...element.labels].map((label) => lineOfText(label, LABEL_LIMIT)).join(" ") : "";
const isEmpty = isTextField(element) || tag === "input"; // its text is its value, not its name
const text = isEmpty && isField ? (labels ? "" : textBefore(element)) : lineOfText(element, MAX_COMPARED);
const inside = isField || text ? "" : imagesIn(element);
const type = tag === "input" || tag === "button" ? (attr(element, "type") ?? "").toLowerCase() : "";
const roleWords = [isField ? "" : typeOfElement(element), TYPE_WORDS[type] ?? "", isField && isInSearch(element) ? "search" : ""];
return {
label: labels,
name: namedBy(element) || (isInputButton ? element.value || attr(element, "alt") || "" : "") || inside || attr(element, "title") || attr(element, "alt") || "",
placeholder: attr(element, "placeholder") || attr(element, "aria-placeholder") || attr(element, "data-placeholder") || "",
text: tag === "select" ? text : text || (isField ? "" : attr(element, "value") ?? ""),
role: [...new Set(roleWords.filter(Boolean))].join(" "),
attribute: [attr(element, "name"), attr(element, "id")].filter(Boolean).join(" ").replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/[_\-.[\]]+/g, " "),
};
};
const fitOf = (element, query) => {
const kind = kindOf(element);
const agrees = query.kinds.has(kind) || (query.kinds.has("field") && kind === "choice");
let best = { score: 0, by: "role", matched: "" };
for (const [by, text] of Object.entries(propertiesOf(element))) {
if (!text) continue;
const words = wordsOf(text);
let score = similarity(query.whole, words);
if (query.kinds.size) score = Math.max(score, similarity(query.rest, words) * (agrees ? 1 : 0.85));
score *= by === "text" && isFillable(element) ? TEXT_BEFORE_FIELD_WEIGHT : WEIGHTS[by];
if (score > best.score) best = { score, by, matched: shorten(collapse(text).trim(), LABEL_LIMIT) };
}
if (!agrees) return best;
if (!query.rest.tokens.length) return { score: Math.max(best.score, 0.6), by: best.score > 0.6 ? best.by : "role", matched: best.matched || kind };
return { ...best, score: best.score && Math.min(1, best.score + 0.03) };
};
const visibleLabel = (element) => TOGGLES.has(typeOfElement(element)) && [...(own(element, "labels") ?? [])].find((label) => visible(label) && boundsOf(label, 0, 0));
const shadowHost = (node) => (nodeKind(rootNodeOf(node)) === FRAGMENT ? hostOf(rootNodeOf(node)) : null);
const isInert = (element) => {
for (let node = element; node; node = shadowHost(node)) {
if (closest(node, INERT) !== null) return true;
}
return false;
};
const hindrance = (element, purpose) => {
const box = boxOf(element);
const shown = visible(element) && box.width >= 1 && box.height >= 1;
if ((!shown && !visibleLabel(element)) || isInert(element)) return "hidden";
if (matches(element, ":disabled,.disabled,.disabled > *") || closest(element, "[aria-disabled=true]") !== null) return "disabled";
if (purpose !== "field") return "";
if (tagOf(element) === "input" && element.type === "file") return "file";
if (isTextField(element) && tagOf(element) !== "select" && (element.readOnly || attr(element, "aria-readonly") === "true")) return "readonly";
return "";
};
const chainOf = (element) => {
const chain = [element];
for (let root = rootNodeOf(element); root !== document; root = rootNodeOf(chain[0])) {
const outer = nodeKind(root) === FRAGMENT ? hostOf(root) : viewOf(root)?.frameElement;
if (!outer) break;
chain.unshift(outer);
}
return chain;
};
const comesBefore = (one_, other) => {
const [first, second] = [chainOf(one_), chainOf(other)];
let level = 0;
while (first[level] === second[level] && level < Math.min(first.length, second.length) - 1) level += 1;
return positionOf(first[level], second[level]) & 4 ? -1 : 1;
};
const controlIn = (element) => {
if (isFillable(element)) return element;
if (tagOf(element) === "label" && element.control) return element.control;
const inside = all(element, FIELD);
return inside.length === 1 ? inside[0] : null;
};
const byName = (found, by, matched, purpose) => {
const candidates = purpose === "field" ? found.map((element) => controlIn(element)).filter(Boolean) : found;
return {
matched: found.length,
fits: candidates.map((element) => ({ element, score: 1, by, matched })),
enough: 0,
};
};
const PURPOSES = {
field: [FIELD, isFillable],
clickable: [USABLE, isClickable],
any: [`${USABLE},${FIELD}`, (element) => !hasIdleRole(element)],
};
const looksClickable = (element) => {
if (matches(element, USABLE) || getComputedStyle(element).cursor !== "pointer") return false;
const parent = element.parentElement;
return !parent || getComputedStyle(parent).cursor !== "pointer";
};
const byWords = (roots, text, purpose) => {
const query = queryOf(text);
const [selector, isWanted] = PURPOSES[purpose];
const fit = (elements) => elements.map((element) => ({ element, ...fitOf(element, query) }));
const usable = roots.flatMap(({ root }) => [...all(root, selector)]).filter((element) => isWanted(element) && !isRepeated(element));
let fits = fit(usable);
if (purpose !== "field" && !fits.some(({ element, score }) => score >= GOOD_ENOUGH && !hindrance(element, purpose))) {
fits = [...fits, ...fit(roots.flatMap(({ root }) => [...all(root, MAY_LOOK_CLICKABLE)]).filter(looksClickable))];
}
return { matched: fits.length, fits, enough: GOOD_ENOUGH };
};
const ROUND = 1000;
const rounded = (score) => Math.round(score * ROUND) / ROUND;
const describeFit = ({ element, score, by, matched, hinders }) => ({
type: typeOfElement(element), label: labelOf(element, typeOfElement(element), attributeNames(element)),
score: rounded(score), by, matched, ...(hinders ? { hindrance: hinders } : {}),
});
const isOnly = (element, found) => found.length === 1 && found[0] === element;
const byReference = ({ click_id: clickId, xpath, node = null }, purpose) => {
if (node !== null || clickId !== null) {
const named = node !== null ? nodeNamed(node) : clickIds.elements.get(clickId)?.deref();
if (!named || !isHere(named)) return { matched: 0, fits: [], enough: 0, failure: "gone" };
if (node === null && xpath !== null && !isOnly(named, byPath(xpath))) return { matched: 0, fits: [], enough: 0, failure: "two_elements" };
return byName([named], "clickId", String(clickId), purpose);
}
if (xpath !== null) return byName(byPath(xpath), "xpath", xpath, purpose);
const active = deepActiveElement();
return byName(active && isFillable(active) ? [active] : [], "focus", "", purpose);
};
const FITS = {
selector: (roots, { selector }, purpose) => byName(roots.flatMap(({ root }) => [...all(root, selector)]), "selector", selector, purpose),
semantic: (roots, { query }, purpose) => byWords(roots, query, purpose),
pointed: (roots, locator, purpose) => byReference(locator, purpose),
searchButton: (roots, locator, purpose) => byName(searchButtons().slice(0, 1), "role", "search", purpose),
};
const submitRank = (element, field) => {
const menu = closest(element, MENUS);
const form = own(element, "form") ?? closest(element, "form");
return (form === closest(field, "form") ? 0 : 4) + (menu === null || isAround(menu, field) ? 0 : 2) + (typeOfElement(element) === "link" ? 1 : 0);
};
const search = (locator, purpose, isSubmit = false) => {
const roots = findRoots(document);
const { matched, fits, enough, failure } = FITS[locator.mode](roots, locator, purpose);
if (failure) return { chosen: null, reason: failure, candidates: [], isFinal: true };
for (const fit of fits) {
fit.score = rounded(fit.score);
if (fit.score >= enough || fit.score > 0.1) fit.hinders = hindrance(fit.element, purpose);
}
const field = isSubmit ? lastField() : null;
for (const fit of fits) fit.rank = field && fit.score >= enough ? submitRank(fit.element, field) : 0;
fits.sort((a, b) => b.score - a.score || a.rank - b.rank || comesBefore(a.element, b.element));
const good = fits.filter(({ score, hinders }) => score >= enough && !hinders);
if (good.length) {
const equals = good.filter(({ score, rank }) => score === good[0].score && rank === good[0].rank).length;
return { chosen: good[0], equals };
}
const blocked = fits.find(({ score }) => score >= enough);
const similar = fits.filter(({ score }) => score > 0.1);
const near = (similar.length ? similar : fits.filter(({ element }) => !hindrance(element, purpose))).slice(0, MAX_CANDIDATES);
return { chosen: null, reason: blocked ? blocked.hinders : matched && locator.mode !== "semantic" ? "not_a_field" : "no_match", candidates: near.map(describeFit) };
};
const MAX_POSITION_CHECKS = 12;
const scrollTo = method(Element.prototype, "scrollIntoView");
const scaleOf = (frame) => {
const { width, height } = boxOf(frame);
return [frame.offsetWidth ? width / frame.offsetWidth : 1, frame.offsetHeight ? height / frame.offsetHeight : 1];
};
const edgesOf = (frame) => {
const { paddingLeft, paddingTop } = getComputedStyle(frame);
return [frame.clientLeft + parseFloat(paddingLeft), frame.clientTop + parseFloat(paddingTop)];
};
const outOf = (frame, { x, y }) => {
const [box, [across, down], [left, top]] = [boxOf(frame), scaleOf(frame), edgesOf(frame)];
return { x: box.x + (left + x) * across, y: box.y + (top + y) * down };
};
const into = (frame, { x, y }) => {
const [box, [across, down], [left, top]] = [boxOf(frame), scaleOf(frame), edgesOf(frame)];
return { x: (x - box.x) / across - left, y: (y - box.y) / down - top };
};
const frameAround = (element) => viewOf(documentOf(element))?.frameElement;
const inTop = (element, point) => {
for (let frame = frameAround(element); frame; frame = frameAround(frame)) point = outOf(frame, point);
return point;
};
const deepestAt = (x, y) => {
let root = document;
let found = null;
for (;;) {
const hit = root.elementFromPoint(x, y);
if (!hit || hit === found) return found;
found = hit;
const inner = innerDocument(hit);
if (inner) ({ x, y } = into(hit, { x, y }));
root = inner ?? shadowOf(hit);
if (!root) return found;
}
};
const ACTIVATES_CONTENT = "a[href],button,label,summary";
const renderedAround = (node) => {
const slot = nodeKind(node) === ELEMENT ? slotOf(node) : null;
return slot ?? parentOf(node) ?? (nodeKind(node) === FRAGMENT ? hostOf(node) : null);
};
const activates = (target, hit) => {
for (let node = hit; node; node = renderedAround(node)) {
if (node === target) return true;
if (nodeKind(node) === ELEMENT && tagOf(node) === "label" && node.control === target) return true;
}
return nodeKind(hit) === ELEMENT && matches(hit, ACTIVATES_CONTENT) && isAround(hit, target);
};
const pointsOf = (element) => {
const rects = [...rectsOf(element)].sort((a, b) => b.width * b.height - a.width * a.height);
const rect = rects[0] ?? boxOf(element);
return [[0.5, 0.5], [0.25, 0.5], [0.75, 0.5], [0.5, 0.25], [0.5, 0.75]].map(([across, down]) =>
({ x: rect.x + rect.width * across, y: rect.y + rect.height * down }));
};
const stopsMoving = async (element) => {
let last = boxOf(element);
for (let check = 0; check < MAX_POSITION_CHECKS; check += 1) {
await sleep(20);
const box = boxOf(element);
if (box.x === last.x && box.y === last.y && box.width === last.width && box.height === last.height) return true;
last = box;
}
return false;
};
const isForeignFrame = (element) => {
const tag = tagOf(element);
if (tag in FRAME_DOCUMENT) return innerDocument(element) === null;
return tag === "embed" || tag === "fencedframe" || (tag === "object" && element.contentWindow !== null);
};
const clickPointOf = async (target) => {
if (isForeignFrame(target)) return { reason: "other_origin" };
scrollTo(target, { block: "center", inline: "center", behavior: "instant" });
if (!(await stopsMoving(target))) return { reason: "moving" };
let over = null;
for (const point of pointsOf(target)) {
const { x, y } = inTop(target, point);
const hit = deepestAt(x, y);
if (hit && activates(target, hit)) return { x, y };
over ??= hit;
}
if (!over) return { reason: "outside" };
return { reason: "covered", coveredBy: shorten(`${tagOf(over)} ${lineOfText(over, 80)}`.trim(), 100) };
};
const openInSameTab = (element) => {
for (const holder of [closest(element, "a[target],area[target]"), own(element, "form"), closest(element, "form[target]")]) {
if (holder && hasAttr(holder, "target")) setAttr(holder, "target", "_self");
}
if (hasAttr(element, "formtarget")) setAttr(element, "formtarget", "_self");
};
const closedRootsAround = (element) => {
const found = [];
for (let root = rootNodeOf(element); nodeKind(root) === FRAGMENT; root = rootNodeOf(hostOf(root))) if (root.mode === "closed") found.push(root);
return found;
};
const MAX_CLICK_MS = 15_000;
const LONGEST_FRAME_MS = 100; // a page that is not shown draws no frames
const CLICK_EVENTS = ["pointerdown", "mousedown", "pointerup", "mouseup", "click"];
const PRESSES = new Set(["pointerdown", "mousedown"]);
const guard = (target) => {
const state = { target, hit: null, isClicked: false, changed: null };
const closedRoots = closedRootsAround(target);
const isAllowed = (event, hit) => {
if (PRESSES.has(event.type) && state.hit === null) {
state.hit = activates(target, hit) && changeOfExpected() === null;
globalThis.continuityReport?.(state.hit);
}
if (!state.hit || event.type !== "click") return Boolean(state.hit);
state.changed ??= changeOfExpected(); // by what the page did since the press
if (state.changed) return false;
state.isClicked ||= activates(target, hit) || !isHere(target);
return state.isClicked;
};
state.check = (event) => {
const hit = event.composedPath()[0];
if (!event.isTrusted || closedRoots.some((root) => hostOf(root) === hit)) return; // the listener in that root sees what was hit
if (isAllowed(event, hit)) return;
event.preventDefault();
event.stopImmediatePropagation();
};
const windows = new Set([window, viewOf(documentOf(target))]);
const views = [...windows, ...closedRoots];
for (const view of views) for (const type of CLICK_EVENTS) listen(view, type, state.check, { capture: true, passive: false });
state.end = () => {
for (const view of views) for (const type of CLICK_EVENTS) unlisten(view, type, state.check, { capture: true });
for (const view of windows) if (view.continuityGuard === state) view.continuityGuard = null;
};
globalThis.continuityGuard?.end();
for (const view of windows) view.continuityGuard = state; // for the listeners of first_listeners.js
sleep(MAX_CLICK_MS).then(() => state.end()); // if clickOutcome is never called, unblock other clicks
};
const nextFrame = () => new Promise((resolve) => {
requestAnimationFrame(() => setTimeout(resolve, 0));
sleep(LONGEST_FRAME_MS).then(resolve);
});
const pressReady = async ({ x, y }) => {
await nextFrame();
const state = globalThis.continuityGuard;
const hit = deepestAt(x, y);
return { isReady: Boolean(state && hit) && !isForeignFrame(hit) && activates(state.target, hit) && changeOfExpected() === null };
};
const pointReady = async ({ x, y }) => {
await nextFrame();
const hit = deepestAt(x, y);
if (!hit) return { reason: "outside" };
if (isForeignFrame(hit)) return { reason: "other_origin" };
const judged = globalThis.continuityJudgedPoint ?? null;
if (judged && (!isHere(judged) || !activates(judged, hit) || changeOfExpected() !== null)) return { isReady: false };
globalThis.continuityTarget = judged ?? hit;
guard(judged ?? hit);
return { isReady: true };
};
const pressOutcome = () => {
const hit = globalThis.continuityGuard?.hit ?? null;
return { outcome: hit === null ? "unseen" : hit ? "hit" : "missed" };
};
const pressReport = async () => {
await new Promise((resolve) => (globalThis.continuityReport = resolve));
return pressOutcome();
};
const clickOutcome = () => {
const state = globalThis.continuityGuard;
const { outcome } = pressOutcome();
globalThis.continuityReport?.(null);
globalThis.continuityJudgedPoint = null;
state?.end();
if (state?.changed) return { outcome: "changed", changed: state.changed };
return { outcome: outcome === "hit" && !state.isClicked ? "diverted" : outcome };
};
const describeElement = (element) => ({ type: typeOfElement(element), label: labelOf(element, typeOfElement(element), attributeNames(element)) });
const isSubmit = (element) => matches(element, "button:not([type=button]):not([type=reset]),input[type=submit],input[type=image]");
const deepActiveElement = () => {
let active = document.activeElement;
while (active && (shadowOf(active)?.activeElement || innerDocument(active)?.activeElement)) {
active = shadowOf(active)?.activeElement ?? innerDocument(active).activeElement;
}
return active;
};
const lastField = () => {
const active = deepActiveElement();
return active && isFillable(active) ? active : (globalThis.continuityField?.deref() ?? null);
};
const defaultSubmit = () => {
const field = lastField();
const forms = findRoots(document).flatMap(({ root }) => [...all(root, "form")]).filter(visible);
const form = field?.form ?? (field ? null : forms.length === 1 ? forms[0] : null);
const buttons = form ? [...form.elements, ...all(form, "input[type=image]")].filter(isSubmit) : [];
const usable = buttons.find((button) => !hindrance(button, "clickable"));
if (usable) return { chosen: { element: usable, score: 1, by: "role", matched: "submit" }, equals: 1 };
if (buttons.length) return { chosen: null, reason: hindrance(buttons[0], "clickable"), candidates: buttons.slice(0, MAX_CANDIDATES).map((element) => ({ ...describeElement(element), hindrance: hindrance(element, "clickable") })) };
if (field) return { chosen: { element: field, score: 1, by: "role", matched: "enter" }, equals: 1, key: "Enter" };
return { chosen: null, reason: "no_form", candidates: [] };
};
const BUTTONS = "button,[role=button],input[type=button],input[type=submit],input[type=image],a:not([href]),a[href='#'],a[href^='javascript:' i]";
const SEARCH_SIGNS = /[\u{1F50D}\u{1F50E}⌕]/u;
const SEARCH_NAMES = /\b(go|ok|los|suche|suchen|chercher|rechercher|buscar|cerca|zoek|pesquisar|поиск|найти)\b|検索|검색/iu;
const OTHER_NAMES = /\b(advanced|clear|close|cancel|reset|history|settings?|options?|filters?|help|tips|voice|image|camera|save|delete|remove)\b|高级|清空|清除|关闭|取消|重置|历史|设置|筛选|帮助|语音|图片|保存|删除/iu;
const MAX_SEARCH_WORDS = 4;
const MAX_SEARCH_DISTANCE = 400; // CSS pixels between the edges
const meansSearch = (element) => {
const { label, name, text, attribute } = propertiesOf(element);
const shown = collapse(name || text || label || "").trim();
const words = shown ? shown : `${attribute} ${(attr(element, "class") ?? "").replace(/[_\-]+/g, " ")}`;
if (OTHER_NAMES.test(words)) return 0;
if (SEARCH_SIGNS.test(shown)) return 2;
const { folded, tokens } = wordsOf(words);
if (!tokens.includes("search") && !(SEARCH_NAMES.test(folded) && tokens.length <= 1)) return 0;
if (!shown) return 1;
return tokens.length === 1 ? 2 : tokens.length <= MAX_SEARCH_WORDS ? 1 : 0;
};
const distanceOf = (one_, other) => {
const [a, b] = [boxOf(one_), boxOf(other)];
return Math.hypot(Math.max(0, a.left - b.right, b.left - a.right), Math.max(0, a.top - b.bottom, b.top - a.bottom));
};
const searchButtons = () => {
const field = lastField();
if (!field) return [];
const form = closest(field, "form");
const isBeside = (element) => {
const menu = closest(element, MENUS);
return (own(element, "form") ?? closest(element, "form") ?? form) === form && (menu === null || isAround(menu, field));
};
return [...all(rootNodeOf(field), BUTTONS)]
.filter((element) => element !== field && isBeside(element) && distanceOf(element, field) <= MAX_SEARCH_DISTANCE && !hindrance(element, "clickable"))
.map((element) => ({ element, rank: meansSearch(element) })).filter(({ rank }) => rank > 0)
.sort((a, b) => b.rank - a.rank || distanceOf(a.element, field) - distanceOf(b.element, field))
.map(({ element }) => element);
};
const clickTargetOf = (element) =>
visible(element) && boxOf(element).width >= 1 ? element : (visibleLabel(element) ?? element);
const attempt = async ({ locator, purpose, isGuarded, isSubmit, expected = null }) => {
const found = locator ? search(locator, purpose, isSubmit) : defaultSubmit();
if (!found.chosen) return { outcome: "missing", reason: found.reason, candidates: found.candidates, isFinal: found.isFinal };
const { element, score, by, matched } = found.chosen;
const changed = differenceFrom(locator, expected, element) ?? changeOfExpected(true);
if (changed) return { outcome: "changed", changed, isFinal: true };
const match = { ...describeElement(element), score, by, matched, equals: found.equals };
const clickTarget = clickTargetOf(element);
const point = purpose === "any" ? {} : await clickPointOf(clickTarget);
globalThis.continuityTarget = element;
if (point.reason && isGuarded) return { outcome: "missing", ...point, candidates: [match] };
if (isGuarded && !found.key) {
openInSameTab(element);
guard(clickTarget);
}
return { outcome: "ready", match, node: nameOfNode(element), x: point.x, y: point.y, key: found.key ?? "", url: location.href, ...fieldInfo(element) };
};
const locate = async (request) => {
const deadline = now() + request.timeoutMs;
try {
for (;;) {
const answer = await attempt(request);
if (answer.outcome === "ready" || answer.isFinal || now() >= deadline) return answer;
await sleep(Math.min(100, Math.max(1, deadline - now())));
}
} catch (error) {
if (error instanceof DOMException && error.name === "SyntaxError") return { outcome: "bad_selector" };
throw error;
}
};
const INDEX_LIMIT = 2000;
const clickIds = (globalThis.continuityClickIds ??= { next: 1, ids: new WeakMap(), elements: new Map() });
const clickIdOf = (element) => {
if (!clickIds.ids.has(element)) {
clickIds.ids.set(element, clickIds.next);
clickIds.elements.set(clickIds.next, new WeakRef(element));
clickIds.next += 1;
}
return clickIds.ids.get(element);
};
const isHitAt = (element, x, y) => {
const hit = deepestAt(x, y);
return hit !== null && activates(element, hit);
};
const parentAcross = (node) => {
const parent = parentOf(node);
if (parent) return parent;
return nodeKind(node) === FRAGMENT ? hostOf(node) : nodeKind(node) === DOCUMENT ? viewOf(node)?.frameElement : null;
};
const isScrolledAway = (element) => {
const box = boxOf(element);
const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
const view = viewOf(documentOf(element));
if (x < 0 || y < 0 || x >= view.innerWidth || y >= view.innerHeight) return true;
for (let node = parentAcross(element); node && nodeKind(node) !== DOCUMENT; node = parentAcross(node)) {
if (nodeKind(node) !== ELEMENT || getComputedStyle(node).overflow === "visible") continue;
const around = boxOf(node);
if (x < around.x || y < around.y || x > around.right || y > around.bottom) return true;
}
return false;
};
const isFixed = (element) => {
for (let node = element; node; node = parentAcross(node)) {
if (nodeKind(node) === ELEMENT && getComputedStyle(node).position === "fixed") return true;
}
return false;
};
const isOverlaid = () => [[0.5, 0.5], [0.2, 0.2], [0.8, 0.2], [0.2, 0.8], [0.8, 0.8]].every(([across, down]) => {
const hit = deepestAt(window.innerWidth * across, window.innerHeight * down);
return hit !== null && isFixed(hit);
});
const visibilityOf = (element) => {
let isInView = false;
for (const point of pointsOf(element)) {
const { x: across, y: down } = inTop(element, point);
if (across < 0 || down < 0 || across >= window.innerWidth || down >= window.innerHeight) continue;
isInView = true;
if (isHitAt(element, across, down)) return "shown";
}
return isInView && !isScrolledAway(element) ? "covered" : "away";
};
const usableNow = (roots, scope) => {
const overlaid = isOverlaid();
const isUsable = ({ element }) => {
if (hindrance(element, "clickable")) return false;
const visibility = visibilityOf(element);
if (visibility === "away") return scope === "document" && (!overlaid || isFixed(element));
return visibility === "shown";
};
const found = [...boxesOf(roots), ...boxesOf(roots, MAY_LOOK_CLICKABLE, looksClickable)].filter(isUsable);
return found.sort((a, b) => a.bounds.y - b.bounds.y || a.bounds.x - b.bounds.x);
};
const boxInView = (element, bounds) => {
if (!frameAround(element)) return { x: bounds.x - Math.round(window.scrollX), y: bounds.y - Math.round(window.scrollY), w: bounds.width, h: bounds.height };
const box = boxOf(element);
const [from, to] = [inTop(element, box), inTop(element, { x: box.right, y: box.bottom })];
return { x: Math.round(from.x), y: Math.round(from.y), w: Math.round(to.x - from.x), h: Math.round(to.y - from.y) };
};
const describeIndexed = ({ element, bounds }, secrets) => {
const text = masked(labelOf(element, typeOfElement(element), attributeNames(element)), secrets.values);
return {
tag: tagOf(element), ...(text ? { text: text.toWellFormed() } : {}), xpath: pathOf(element),
bbox: boxInView(element, bounds),
};
};
const writeClickIds = (roots, attribute, indexed) => {
for (const { root } of roots) {
for (const element of all(root, `[${attribute}]`)) if (!indexed.has(element)) dropAttr(element, attribute);
}
for (const element of indexed) {
const clickId = String(clickIdOf(element));
if (attr(element, attribute) !== clickId) setAttr(element, attribute, clickId);
}
};
const HOSTS = new Set(["article", "aside", "blockquote", "div", "footer", "header", "main", "nav", "p", "section", "span"]);
const MAX_PROBES = 2; // a root may be attached after its host
const MAX_HOSTS = 64;
const probes = (globalThis.continuityProbes ??= new WeakMap());
const OVERLAY = "continuity-overlay"; // of the browser extension, and no part of the page
const mayHaveClosedRoot = (element) => {
const tag = tagOf(element);
if (tag === OVERLAY) return false;
if (shadowOf(element) || (probes.get(element) ?? 0) >= MAX_PROBES) return false;
if (!tag.includes("-") && !(HOSTS.has(tag) && !firstChild(element))) return false;
const box = boxOf(element);
return box.width >= 1 && box.height >= 1;
};
const possibleClosedHosts = (roots) => {
const found = [];
for (const { root } of roots) {
for (const element of all(root, ":not(form)")) {
if (found.length >= MAX_HOSTS) return found;
if (mayHaveClosedRoot(element)) found.push(element);
}
}
for (const element of found) probes.set(element, (probes.get(element) ?? 0) + 1);
return found;
};
const unopenedHosts = (roots = findRoots(document)) => {
const hosts = possibleClosedHosts(roots);
globalThis.continuityClosedHosts = hosts;
return hosts.length;
};
const MODES = {
mark: (found, { attribute, firstId }, roots, secrets) => {
clickIds.next = Math.max(clickIds.next, firstId);
for (const [clickId, reference] of clickIds.elements) if (!reference.deref()) clickIds.elements.delete(clickId);
const described = found.map((box) => ({ clickId: clickIdOf(box.element), ...describeIndexed(box, secrets) }));
writeClickIds(roots, attribute, new Set(found.map(({ element }) => element)));
return described;
},
scan: (found, args, roots, secrets) => found.map((box) => {
const clickId = clickIds.ids.get(box.element);
return { ...describeIndexed(box, secrets), ...(clickId ? { clickId } : {}) };
}),
};
const index = (args) => {
const roots = findRoots(document);
const hosts = unopenedHosts(roots);
if (hosts) return { closedHosts: hosts };
const found = usableNow(roots, args.scope);
const secrets = findSecrets(roots.map(({ root }) => root));
const elements = MODES[args.mode](found.slice(0, INDEX_LIMIT), args, roots, secrets);
return { closedHosts: 0, elements, omitted: Math.max(0, found.length - INDEX_LIMIT), nextId: clickIds.next };
};
const MAX_SETTLE_MS = 1500;
const MORE_MS = 500; // how long nothing new may come at the end, while nothing is requested
const LONGEST_MORE_MS = 6000;
const scrollBoxTo = method(Element.prototype, "scrollTo");
const scrollTopOf = getter(Element.prototype, "scrollTop");
const scrollHeightOf = getter(Element.prototype, "scrollHeight");
const clientHeightOf = getter(Element.prototype, "clientHeight");
const scrollingElementOf = getter(Document.prototype, "scrollingElement");
const overflowOf = (element) => getComputedStyle(element).overflowY;
const viewportOverflow = (page) => {
const [html, body] = [rootOf(page), bodyOf(page)];
return body && overflowOf(html) === "visible" ? overflowOf(body) : overflowOf(html);
};
const isScrollable = (element) => {
if (scrollHeightOf(element) - clientHeightOf(element) <= 1) return false;
const page = documentOf(element);
if (element === scrollingElementOf(page)) return !["hidden", "clip"].includes(viewportOverflow(page));
return ["auto", "scroll"].includes(overflowOf(element));
};
const scrollAreaAround = (element) => {
for (let node = element; node; node = parentAcross(node)) {
if (nodeKind(node) === ELEMENT && isScrollable(node)) return node;
}
return null;
};
const visibleArea = (element) => {
const box = boxOf(element);
return Math.max(0, Math.min(box.right, innerWidth) - Math.max(box.x, 0)) * Math.max(0, Math.min(box.bottom, innerHeight) - Math.max(box.y, 0));
};
const mainScrollArea = () => {
const viewport = scrollingElementOf(document) ?? rootOf(document);
if (!viewport || isScrollable(viewport)) return viewport;
const areas = findRoots(document).flatMap(({ root }) => [...all(root, "*")]).filter(isScrollable)
.map((element) => ({ element, area: visibleArea(element) })).filter(({ area }) => area > 0);
return areas.sort((a, b) => b.area - a.area)[0]?.element ?? viewport;
};
const leftBelow = (area) => scrollHeightOf(area) - clientHeightOf(area) - scrollTopOf(area);
const scrollPosition = (area) => {
if (!area) return { screen: "screen 1 of 1", atEnd: true };
const height = Math.max(1, clientHeightOf(area));
const count = Math.max(1, Math.ceil((scrollHeightOf(area) - 1) / height));
const atEnd = leftBelow(area) <= 1;
return { screen: `screen ${atEnd ? count : Math.min(count, 1 + Math.round(scrollTopOf(area) / height))} of ${count}`, atEnd };
};
const moveTo = (area, top) => scrollBoxTo(area, { top, behavior: "instant" });
const settleScroll = async () => {
await sleep(50); // the page's scroll listeners and observers run in the next frames
await quiet(now() + MAX_SETTLE_MS, QUIET_MS, () => true);
};
const growsAtEnd = async (area, deadline) => {
const height = scrollHeightOf(area);
const end = Math.min(deadline, now() + LONGEST_MORE_MS);
for (let calmSince = now(); now() < end; await sleep(50)) {
if (scrollHeightOf(area) > height + 1) return true;
if (isBusy()) calmSince = now();
if (now() - calmSince >= MORE_MS) return false;
}
return false;
};
const scrollUntilNothingNew = async (area, { maxScreens, timeoutMs }) => {
const deadline = now() + timeoutMs;
for (let screens = 0; ; screens += 1) {
const isDone = leftBelow(area) <= 1 && !(await growsAtEnd(area, deadline));
if (isDone && now() < deadline) return { screens, stopped: "" };
if (screens >= maxScreens) return { screens, stopped: "screens" };
if (now() >= deadline) return { screens, stopped: "time" };
moveTo(area, scrollTopOf(area) + clientHeightOf(area));
await sleep(50);
}
};
const referenced = (locator) => {
try {
const { fits, failure = "no_match" } = byReference(locator, "any");
return fits.length ? { element: fits[0].element } : { problem: failure };
} catch {
return { problem: "bad_xpath" };
}
};
const scroll = async ({ locator, screens, to, untilNothingNew, maxScreens, timeoutMs }) => {
const { element, problem } = locator ? referenced(locator) : {};
if (problem) return { problem };
const area = (element ? scrollAreaAround(element) : mainScrollArea()) ?? mainScrollArea();
if (!area) return { moved: false, ...scrollPosition(area), ...(untilNothingNew ? { screens: 0, stopped: "" } : {}) };
const before = scrollTopOf(area);
let fields = {};
if (untilNothingNew) fields = await scrollUntilNothingNew(area, { maxScreens, timeoutMs });
else if (to !== null) moveTo(area, to === "top" ? 0 : scrollHeightOf(area));
else if (screens !== null) moveTo(area, before + screens * clientHeightOf(area));
else scrollTo(element, { block: "center", inline: "nearest", behavior: "instant" });
if (!untilNothingNew) await settleScroll();
return { moved: Math.abs(scrollTopOf(area) - before) >= 1, ...scrollPosition(area), ...fields };
};
const MAX_MATCHES = 20;
const MATCH_CONTEXT = 70; // characters before and after a match
const MAX_CLIMB = 6; // how far around a match its nearest usable element is searched
const newRange = method(Document.prototype, "createRange");
const rectsOfRange = method(Range.prototype, "getClientRects");
const startRange = method(Range.prototype, "setStart");
const endRange = method(Range.prototype, "setEnd");
const textBlocks = () => {
const blocks = [];
let block = null;
const visit = (node) => {
if (nodeKind(node) === TEXT) {
block ??= blocks[blocks.push({ text: "", parts: [] }) - 1];
block.parts.push({ node, start: block.text.length });
block.text += dataOf(node);
}
if (nodeKind(node) !== ELEMENT) return;
const tag = tagOf(node);
if (tag === "br" && block) block.text += " ";
if (NO_TEXT.has(tag) || attr(node, "aria-hidden") === "true" || !visible(node)) return;
const isBlock = tag in FRAME_DOCUMENT || !/^(inline|contents)/.test(getComputedStyle(node).display);
if (isBlock) block = null;
eachChild(node, visit);
if (isBlock) block = null;
};
if (rootOf(document)) visit(rootOf(document)); // a document that is being written has no root yet
return blocks;
};
const lowerCase = (text) => text.replace(/[^]/g, (character) => (character === "ς" ? "σ" : character.toLowerCase()));
const plainText = (text) => lowerCase(collapse(text).trim());
const isSpace = (character) => /\s/.test(character);
const withPlaces = (text) => {
let plain = "";
const places = [];
for (let at = 0; at < text.length; at += 1) {
const lower = lowerCase(collapse(text[at]));
if (lower === " " && isSpace(plain.at(-1) ?? "")) continue;
for (const character of lower) {
plain += character;
places.push(at);
}
}
return { plain, places };
};
const matchesIn = (block, wanted) => {
if (!plainText(block.text).includes(wanted)) return [];
const { plain, places } = withPlaces(block.text);
const found = [];
for (let at = plain.indexOf(wanted); at >= 0; at = plain.indexOf(wanted, at + wanted.length)) {
found.push({ block, from: places[at], to: places[at + wanted.length - 1] + 1 });
}
return found;
};
const findMatches = (wanted) => textBlocks().flatMap((block) => matchesIn(block, wanted));
const partAt = ({ parts }, at) => parts.findLast(({ start }) => start <= at);
const placeOf = ({ block, from, to }) => {
const { node, start } = partAt(block, from);
const range = newRange(documentOf(node));
startRange(range, node, from - start);
endRange(range, node, Math.min(to - start, dataOf(node).length));
const rect = rectsOfRange(range)[0] ?? boxOf(elementAround(node));
const { x, y } = inTop(node, rect);
return { node, x: x + window.scrollX, y: y + window.scrollY };
};
const elementAround = (node) => {
let around = node;
while (nodeKind(around) !== ELEMENT) around = parentAcross(around);
return around;
};
const gapTo = ({ x, y }, bounds) => {
const across = Math.max(bounds.x - x, x - bounds.x - bounds.width, 0);
const down = Math.max(bounds.y - y, y - bounds.y - bounds.height, 0);
return across + 2 * down; // what is on the same line is nearer
};
const nearestUsable = (place, usable) => {
const known = new Map(usable.map((one_) => [one_.element, one_]));
for (let node = elementAround(place.node), level = 0; node && nodeKind(node) !== DOCUMENT; node = parentAcross(node), level += 1) {
if (nodeKind(node) !== ELEMENT) continue;
if (known.has(node)) return node;
if (tagOf(node) === "label" && known.has(node.control)) return node.control;
if (level >= MAX_CLIMB || tagOf(node) === "body") return null;
const inside = usable.filter(({ element }) => isAround(node, element));
if (inside.length) return inside.reduce((a, b) => (gapTo(place, b.bounds) < gapTo(place, a.bounds) ? b : a)).element;
}
return null;
};
const excerpt = ({ block, from, to }, secrets) => {
const before = block.text.slice(Math.max(0, from - MATCH_CONTEXT), from).toWellFormed();
const after = block.text.slice(to, to + MATCH_CONTEXT).toWellFormed();
const text = collapse(`${from > MATCH_CONTEXT ? "…" : ""}${before}${block.text.slice(from, to)}${after}`).trim();
return masked(text + (to + MATCH_CONTEXT < block.text.length ? "…" : ""), secrets.values);
};
const findText = async ({ text, scroll: wantsScroll, attribute, firstId }) => {
const hosts = unopenedHosts();
if (hosts) return { closedHosts: hosts };
let found = findMatches(plainText(text));
if (wantsScroll && found.length) {
scrollTo(elementAround(placeOf(found[0]).node), { block: "center", inline: "nearest", behavior: "instant" });
await settleScroll();
found = findMatches(plainText(text)); // the page may have changed while it scrolled
}
const roots = findRoots(document);
const secrets = findSecrets(roots.map(({ root }) => root));
const usable = found.length ? usableNow(roots, "document") : [];
clickIds.next = Math.max(clickIds.next, firstId);
const matches_ = found.slice(0, MAX_MATCHES).map((match) => {
const place = placeOf(match);
const near = nearestUsable(place, usable);
if (near) setAttr(near, attribute, String(clickIdOf(near)));
return {
text: excerpt(match, secrets), screen: 1 + Math.max(0, Math.floor(place.y / window.innerHeight)),
...(near ? { clickId: clickIdOf(near) } : {}),
};
});
return { closedHosts: 0, total: found.length, matches: matches_, nextId: clickIds.next };
};
const waitForText = async ({ text, gone, timeoutMs }) => {
const [wanted, deadline] = [plainText(text), now() + timeoutMs];
for (;;) {
const began = now();
const hosts = unopenedHosts();
if (hosts) return { closedHosts: hosts };
const isShown = textBlocks().some((block) => plainText(block.text).includes(wanted));
if (isShown !== gone && !(gone && document.readyState === "loading")) return { closedHosts: 0, isMet: true };
if (now() >= deadline) return { closedHosts: 0, isMet: false };
await sleep(Math.max(1, Math.min(Math.max(100, 4 * (now() - began)), deadline - now())));
}
};
const MARK_COLORS = ["#c2185b", "#1565c0", "#2e7d32", "#6a1b9a", "#b34700"];
const LAYER_STYLE = "all: initial; position: fixed; inset: 0; width: 100%; height: 100%; max-width: none; max-height: none;" +
"margin: 0; padding: 0; border: 0; background: none; overflow: hidden; pointer-events: none;";
const LABEL_HEIGHT = 15;
const eraseNumbers = () => {
globalThis.continuityNumbers?.remove();
globalThis.continuityNumbers = null;
return {};
};
const styled = (style) => {
const element = document.createElementNS("http://www.w3.org/1999/xhtml", "div");
element.style.cssText = style;
return element;
};
const marksInView = () => {
const marks = [];
for (const [clickId, reference] of clickIds.elements) {
const element = reference.deref();
if (!element?.isConnected || !visible(element) || visibilityOf(element) !== "shown") continue;
const box = boxOf(element);
const [from, to] = [inTop(element, box), inTop(element, { x: box.right, y: box.bottom })];
marks.push({ clickId, x: from.x, y: from.y, width: to.x - from.x, height: to.y - from.y });
}
return marks;
};
const drawNumbers = () => {
eraseNumbers();
const marks = marksInView();
const layer = styled(LAYER_STYLE);
const root = layer.attachShadow({ mode: "closed" });
for (const { clickId, x, y, width, height } of marks) {
const color = MARK_COLORS[clickId % MARK_COLORS.length];
root.append(styled(`position: absolute; box-sizing: border-box; border: 2px solid ${color};` +
`left: ${x}px; top: ${y}px; width: ${width}px; height: ${height}px;`));
const top = y >= LABEL_HEIGHT ? y - LABEL_HEIGHT : y;
const label = styled(`position: absolute; left: ${Math.max(0, x)}px; top: ${Math.max(0, top)}px; background: ${color};` +
`color: #fff; font: bold 12px/${LABEL_HEIGHT}px sans-serif; padding: 0 3px;`);
label.textContent = String(clickId);
root.append(label);
}
if (!document.documentElement) return { drawn: 0 }; // the document is being written
document.documentElement.append(layer);
globalThis.continuityNumbers = layer;
if (layer.showPopover) {
layer.popover = "manual";
layer.showPopover();
}
return { drawn: marks.length };
};
const LINE_ADDRESS_LIMIT = 120;
const LINE_OPTION_LIMIT = 40;
const MESSAGE_LIMIT = 80;
const quoted = (text) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
const hiddenControlOf = (element) => {
const control = tagOf(element) === "label" ? element.control : null;
if (!control || !(TOGGLES.has(typeOfElement(control)) || control.type === "file")) return null;
return visible(control) && boxOf(control).width >= 1 ? null : control;
};
const kindWord = (element, type) => {
const tag = tagOf(element);
if (tag === "select") return element.multiple ? "select multiple" : "select";
if (tag === "textarea") return "textarea";
if (tag === "input" && !hasAttr(element, "role") && !HAS_NO_VALUE.has(type)) {
return element.type === "text" ? "input" : `input ${element.type}`;
}
return type === "textbox" && own(element, "isContentEditable") ? "editor" : type;
};
const optionWords = (state) => {
const options = state.options.map((option) => shorten(option.replace(/[{}|]/g, "/"), LINE_OPTION_LIMIT));
if (state.moreOptions) options.push(`… ${state.moreOptions} more`);
return `{${options.join("|")}}`;
};
const valueWords = (element, type, state, secrets) => {
if (!matches(element, FIELDS) || HAS_NO_VALUE.has(type)) return [];
if (tagOf(element) === "select") return [`= ${state.value ?? "(none)"}`, ...(state.options ? [optionWords(state)] : [])];
return [secrets.fields.has(element) && state.value ? `= ${MASK}` : `= ${quoted(state.value ?? "")}`];
};
const suggestionWords = (element) => {
const options = tagOf(element) === "input" && element.list ? [...element.list.options] : [];
if (!options.length) return [];
const labels = options.slice(0, OPTIONS_LIMIT).map((option) => option.value || option.label);
return [optionWords({ options: labels, moreOptions: options.length - labels.length })];
};
const submitsForm = (element) => {
const tag = tagOf(element);
if (tag !== "button" && tag !== "input") return false;
return (element.type === "submit" || element.type === "image") && Boolean(element.form);
};
const stateWords = (element, state) => {
const words = ["checked", "selected", "pressed", "required", "readonly", "current"]
.filter((name) => state[name]).map((name) => (state[name] === "mixed" ? `${name}=mixed` : name));
if (state.expanded !== undefined) words.push(state.expanded ? "expanded" : "collapsed");
if (submitsForm(element)) words.push("submits");
if (state.disabled || hindrance(element, "clickable") === "disabled") words.push("disabled");
const isRefused = matches(element, ":user-invalid");
if (state.invalid || isRefused) words.push("invalid");
if (isRefused && element.validationMessage) words.push(`(${shorten(element.validationMessage, MESSAGE_LIMIT)})`);
return words;
};
const hintWords = (element, label, state) => {
const hint = labelText(attr(element, "placeholder"));
return hint && hint !== label && !state.value && matches(element, FIELDS) ? [`placeholder ${quoted(hint)}`] : [];
};
const elementWords = (element, secrets) => {
const control = hiddenControlOf(element) ?? element;
const type = typeOfElement(control);
const names = attributeNames(control);
const label = labelOf(control, type, names) || (isTextField(control) ? textBefore(control) : "");
const state = stateOf(control, type, names, secrets);
return [
kindWord(control, type), ...(label ? [quoted(label)] : []), ...valueWords(control, type, state, secrets),
...suggestionWords(control), ...hintWords(control, label, state), ...stateWords(control, state),
...(state.href ? [`→ ${shorten(state.href, LINE_ADDRESS_LIMIT)}`] : []),
].join(" ");
};
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
const NO_TEXT_LINE = /^(?:[[#…\\]|frame(?: "| of another site|$)|\(\d+ (?:elements are behind|unchanged lines))/;
const INVISIBLE_START = /^[\p{Cf}\p{Z}]+/u;
const plainLine = (text) => collapse(text.replace(CONTROL, "")).trim();
const textLine = (text) => {
const line = plainLine(text);
return NO_TEXT_LINE.test(line.replace(INVISIBLE_START, "")) ? `\\${line}` : line;
};
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
addOthers() {
this.flush();
for (const element of this.left) this.addElement(element);
this.flush();
}
}
const OBSERVED_LIMIT = 2000;
const seenIds = (globalThis.continuitySeenIds ??= { last: null, earlier: null });
const labelsOfHidden = (roots) => boxesOf(roots, "label", (element) => hiddenControlOf(element) !== null);
const observed = (roots) => {
const boxes = [...boxesOf(roots), ...boxesOf(roots, MAY_LOOK_CLICKABLE, looksClickable), ...labelsOfHidden(roots)];
const byElement = new Map(boxes.map((box) => [box.element, box]));
for (const element of byElement.keys()) {
if (tagOf(element) === "label" && element.control && byElement.has(element.control)) byElement.delete(element);
}
const isOverlaidNow = isOverlaid();
const behind = new Set();
const listed = [];
for (const { element, bounds } of byElement.values()) {
if (isInert(element)) continue;
const visibility = visibilityOf(element);
if (isDot(bounds) && visibility !== "shown") continue;
if (isOverlaidNow && visibility !== "shown" && !isFixed(element)) behind.add(element);
else listed.push({ element, bounds, visibility });
}
listed.sort((a, b) => a.bounds.y - b.bounds.y || a.bounds.x - b.bounds.x);
return { listed: listed.slice(0, OBSERVED_LIMIT), behind };
};
const newIds = (ids, isContinued) => {
if (!isContinued) Object.assign(seenIds, { earlier: seenIds.last, last: new Set(ids) });
return new Set(seenIds.earlier === null ? [] : ids.filter((id) => !seenIds.earlier.has(id)));
};
const lineOutput = ({ element, ...line }, withBoxes) => {
if (!element) return line;
const { x, y } = inTop(element, boxOf(element));
const { width, height } = boxOf(element);
const place = withBoxes ? ` @ ${Math.round(x)},${Math.round(y)} ${Math.round(width)}x${Math.round(height)} ${pathOf(element)}` : "";
return { ...line, text: line.text + place, isElement: true };
};
const outlineLines = ({ listed, behind }, isContinued, secrets) => {
const isNew = newIds(listed.map(({ element }) => clickIdOf(element)), isContinued);
const byElement = new Map(listed.map(({ element, visibility }) => {
const clickId = clickIdOf(element);
return [element, { clickId, visibility, isNew: isNew.has(clickId) }];
}));
const outline = new Outline(byElement, behind, secrets);
const root = rootOf(document); // null after document.open()
if (root) outline.visitElement(root, tagOf(root));
outline.addOthers();
return outline.lines;
};
const observe = async ({ attribute, firstId, isContinued, withBoxes, settle: limits }) => {
await settle(limits);
const roots = findRoots(document);
const hosts = possibleClosedHosts(roots);
globalThis.continuityClosedHosts = hosts;
if (hosts.length) return { closedHosts: hosts.length };
clickIds.next = Math.max(clickIds.next, firstId);
const found = observed(roots);
const secrets = findSecrets(roots.map(({ root }) => root));
const lines = outlineLines(found, isContinued, secrets);
writeClickIds(roots, attribute, new Set(found.listed.map(({ element }) => element)));
return {
closedHosts: 0, url: location.href, title: masked(shorten(collapse(titleOf(document)).trim(), 300), secrets.values).toWellFormed(),
status: httpStatus(), viewport: { width: window.innerWidth, height: window.innerHeight }, scroll: scrollPosition(mainScrollArea()).screen,
lines: lines.map((line) => lineOutput(line, withBoxes)), elements: found.listed.length, behind: found.behind.size, nextId: clickIds.next,
};
};
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
const clickOf = method(HTMLElement.prototype, "click");
const submitForm = method(HTMLFormElement.prototype, "requestSubmit");
const mouseEvent = (element, kind) =>
dispatch(element, new MouseEvent(kind, { bubbles: true, cancelable: true, composed: true, view: viewOf(documentOf(element)) }));
const domClick = () => {
const element = target();
mouseEvent(element, "mousedown");
mouseEvent(element, "mouseup");
if (namespaceOf(element) === HTML) clickOf(element);
else mouseEvent(element, "click");
return {};
};
const domType = (text) => {
const element = target();
if (isNativeField(element)) return setValue(text);
focus();
const writes = text ? ["insertText", false, text] : ["delete"];
if (!documentOf(element).execCommand(...writes)) {
element.textContent = text;
dispatchChange(element);
}
return {};
};
const ENTER = { key: "Enter", code: "Enter", keyCode: 13 };
const keyEvent = (element, kind, given = ENTER) => dispatch(element, new KeyboardEvent(kind, {
...given, which: given.keyCode, bubbles: true, cancelable: true, composed: true,
}));
const domEnter = () => {
const element = target();
const isAllowed = keyEvent(element, "keydown") && keyEvent(element, "keypress");
if (isAllowed && tagOf(element) !== "textarea" && element.form) submitForm(element.form);
keyEvent(element, "keyup");
return {};
};
const ACTIVATED_BY_KEYS = "button,summary,input[type=button],input[type=submit],input[type=reset],input[type=checkbox],input[type=radio]";
const isActivatedBy = (element, key) => (key === " " && matches(element, ACTIVATED_BY_KEYS)) ||
(key === "Enter" && matches(element, "a[href],button,summary,input[type=button],input[type=submit],input[type=reset]"));
const EDITS = { Backspace: ["delete"], Delete: ["forwardDelete"], Enter: ["insertLineBreak"] };
const domKey = ({ key, code, keyCode, text }) => {
const element = target();
const given = { key, code, keyCode };
if (isActivatedBy(element, key)) {
if (keyEvent(element, "keydown", given) && keyEvent(element, "keyup", given)) clickOf(element);
return {};
}
if (key === "Enter" && tagOf(element) === "input") return domEnter();
const isAllowed = keyEvent(element, "keydown", given) && (!text || keyEvent(element, "keypress", given));
const edit = EDITS[key] ?? (text ? ["insertText", false, text] : null);
if (isAllowed && edit && (isNativeField(element) || element.isContentEditable)) documentOf(element).execCommand(...edit);
keyEvent(element, "keyup", given);
return {};
};
const LOADING_WORDS = "searching|loading|fetching|please wait|suche läuft|wird geladen|chargement|cargando|buscando|正在搜索|正在加载|搜索中|加载中|请稍候|読み込み中|検索中";
const LOADING_LINE = new RegExp(`^[^\\p{L}]*(${LOADING_WORDS})([^\\p{L}]*| (results?|for|more|data)\\b.{0,60}|.{0,60}(\\.\\.|…))$`, "iu");
const PASSING = new Set(["listbox", "timer", "marquee", "tooltip"]);
const LOADERS = "[aria-busy=true],[role=progressbar]:not([aria-valuenow]),progress:not([value])";
const SAMPLE_MS = 100;
const INPUT_MS = 500; // a change this soon after an input may be its effect
const PROOF_MS = 1500; // a piece that has held still for so long is not a clock that shows seconds
const REPEATS = 3;
const UNUSED_MS = 60_000; // then the watch ends
const MAX_CLOCKS = 8; // pieces that change at the same moment
const MAX_WATCHED = 20_000; // elements
const piecesShown = () => {
const pieces = new Map();
let left = MAX_WATCHED;
const visit = (parent, path) => {
let [text, number] = ["", 0];
eachChild(parent, (child) => {
const kind = nodeKind(child);
if (kind === TEXT) text += dataOf(child);
if (kind !== ELEMENT) return undefined;
number += 1;
left -= 1;
if (left < 0) return STOP;
const tag = tagOf(child);
if (!NO_TEXT.has(tag) && !PASSING.has(attr(child, "role")) && visible(child)) visit(child, `${path}/${number}${tag}`);
return undefined;
});
const shown = collapse(text).trim();
if (shown || !number) pieces.set(path, shown); // also an empty element without children: a clock may start in it
};
const body = bodyOf(document);
if (body) visit(body, "");
return pieces;
};
const withoutNumbers = (text) => {
const plain = text.replace(/\d+/g, "#");
return /[^\s#:.,/%-]/.test(plain) ? plain : "";
};
const isSelfChanging = (piece, moment) => piece.own >= 1
|| (piece.changes >= REPEATS && piece.shownAt - piece.changedAt >= PROOF_MS && moment - piece.shownAt < 2 * PROOF_MS && !piece.grows);
const noteNew = (watch, path, shown, moment) => {
const isNew = watch.sampledAt !== null;
const [text, at] = [withoutNumbers(shown), isNew ? moment : -Infinity];
watch.pieces.set(path, { shown, text, shownBefore: isNew ? null : shown, before: isNew ? "" : text, own: 0, changes: isNew ? 1 : 0, grows: true, changedAt: at, shownAt: at, textAt: at });
};
const noteChange = (piece, shown, moment, weight) => {
const text = withoutNumbers(shown ?? "");
if (piece.shown !== null) piece.own += weight;
piece.grows &&= shown !== null && shown.startsWith(piece.shown ?? "");
piece.changes += 1;
if (piece.changes === 1) piece.changedAt = moment;
if (piece.text !== text) piece.textAt = moment;
Object.assign(piece, { shown, text, shownAt: moment });
};
const sampleTexts = (watch) => {
const moment = now();
const isUntouched = moment - watch.inputAt > INPUT_MS;
if (isUntouched && watch.sampledAt !== null) watch.untouchedMs += moment - watch.sampledAt;
const shown = piecesShown();
const changed = [...watch.pieces].filter(([path, piece]) => piece.shown !== (shown.get(path) ?? null));
const isOwn = watch.learns && isUntouched && changed.length <= MAX_CLOCKS;
for (const [path, piece] of changed) noteChange(piece, shown.get(path) ?? null, moment, isOwn ? (isBusy() ? 0.5 : 1) : 0);
for (const [path, text] of shown) if (!watch.pieces.has(path)) noteNew(watch, path, text, moment);
watch.sampledAt = moment;
};
const keepSampling = async (watch) => {
while (now() - watch.usedAt < UNUSED_MS) {
const began = now();
sampleTexts(watch);
await sleep(Math.max(SAMPLE_MS, 10 * (now() - began)));
}
globalThis.continuityTexts = null;
};
const currentTexts = () => {
const found = globalThis.continuityTexts;
if (found) return found;
const watch = { pieces: new Map(), inputAt: -Infinity, sampledAt: null, usedAt: now(), startedAt: now(), untouchedMs: 0, learns: false };
globalThis.continuityTexts = watch;
const onInput = (event) => {
if (event.isTrusted || event.type === "change") watch.inputAt = now();
};
for (const type of ["keydown", "pointerdown", "input", "change"]) listen(window, type, onInput, { capture: true, passive: true });
keepSampling(watch);
return watch;
};
const loadersShown = () => findRoots(document).flatMap(({ root }) => [...all(root, LOADERS)]).filter(visible).length;
const shownState = () => {
const watch = currentTexts();
watch.usedAt = now();
sampleTexts(watch);
const moment = now();
const all_ = [...watch.pieces.values()];
const shown = all_.map(({ text }) => text).filter(Boolean).sort();
const others = all_.filter((piece) => !isSelfChanging(piece, moment));
const differing = others.filter(({ text, before }) => text !== before);
return {
text: hashOf(shown.join("\n")),
touched: differing.length > 0,
changed: differing.some(({ shownAt }) => moment - shownAt >= PROOF_MS),
stillMs: moment - others.reduce((last, { textAt }) => Math.max(last, textAt), watch.startedAt),
loading: shown.filter((text) => LOADING_LINE.test(text)).length + loadersShown(),
busy: isBusy(),
untouchedMs: watch.untouchedMs,
};
};
const shownChange = () => {
const watch = currentTexts();
watch.usedAt = now();
sampleTexts(watch);
const moment = now();
if (!watch.isCompared) return { pieces: null, stays: true };
const others = [...watch.pieces.values()].filter((piece) => piece.shown !== piece.shownBefore && !isSelfChanging(piece, moment));
return { pieces: others.length, stays: others.some(({ shownAt }) => moment - shownAt >= PROOF_MS) };
};
const addressesRequested = () => performance.getEntriesByType("resource")
.filter(({ initiatorType }) => initiatorType === "fetch" || initiatorType === "xmlhttprequest").map(({ name }) => name);
const watchTexts = ({ learns }) => {
const watch = currentTexts();
sampleTexts(watch);
Object.assign(watch, { learns, untouchedMs: 0, isCompared: true });
for (const piece of watch.pieces.values()) {
Object.assign(piece, { before: piece.text, shownBefore: piece.shown, changes: 0, grows: true, changedAt: -Infinity, shownAt: -Infinity, textAt: -Infinity });
}
return { ...shownState(), requested: addressesRequested() };
};
const DRAG_STEPS = 8;
const hoverPoint = () => clickPointOf(clickTargetOf(target()));
const isHovered = () => ({ isHovered: matches(clickTargetOf(target()), ":is(:hover)") });
const focusForKeys = (locator) => {
const { element = deepActiveElement() ?? rootOf(document), problem } = locator ? referenced(locator) : {};
if (problem) return { problem };
expectJudged(element, locator);
const changed = changeOfExpected(true);
if (changed) return { problem: "changed", changed };
if (!element) return { focus: "page", url: location.href, node: "" }; // the document is being written: keys go to the page
if (locator && deepActiveElement() !== element) {
element.focus();
if (deepActiveElement() !== element) return { problem: "not_focusable" };
}
globalThis.continuityTarget = element;
const isPage = [bodyOf(document), rootOf(document)].includes(element);
const { values } = findSecrets(findRoots(document).map(({ root }) => root));
const { type, label } = describeElement(element);
return { focus: isPage ? "page" : masked(`${type} ${JSON.stringify(label)}`, values), url: location.href, node: nameOfNode(element) };
};
const keysReady = () => {
const active = deepActiveElement();
return { isReady: !active || !isForeignFrame(active) };
};
const centreOf = (element) => {
const box = boxOf(element);
return inTop(element, { x: box.x + box.width / 2, y: box.y + box.height / 2 });
};
const dragDestination = async (locator) => {
const { element, problem } = referenced(locator);
if (problem) return { problem };
const { reason, coveredBy } = await clickPointOf(element);
globalThis.continuityDestination = element;
return reason ? { problem: reason, coveredBy } : { node: nameOfNode(element) };
};
const dropPoint = (point) => {
const element = globalThis.continuityDestination;
if (!point && !(element && isHere(element) && visible(element))) return { problem: "gone" };
if (!point) scrollTo(element, { block: "nearest", inline: "nearest", behavior: "instant" });
const end = point ?? centreOf(element);
const hit = deepestAt(end.x, end.y);
return hit && isForeignFrame(hit) ? { problem: "other_origin" } : end;
};
const watchDrag = ({ isByMouse }) => {
globalThis.continuityDrag?.end();
const state = { start: null, isDropped: false };
const listeners = {
dragstart: (event) => { if (event.isTrusted === isByMouse) state.start ??= event; },
drop: (event) => { if (event.isTrusted === isByMouse) state.isDropped = true; },
};
const places = [target(), globalThis.continuityDestination].filter(Boolean);
const views = new Set([window, ...places.map((element) => viewOf(documentOf(element))).filter(Boolean)]);
for (const view of views) for (const [kind, listener] of Object.entries(listeners)) listen(view, kind, listener, { capture: true });
state.end = () => {
for (const view of views) for (const [kind, listener] of Object.entries(listeners)) unlisten(view, kind, listener, { capture: true });
};
globalThis.continuityDrag = state;
return {};
};
const htmlDrag = () => {
const { start } = globalThis.continuityDrag;
return { isStarted: start !== null && !start.defaultPrevented };
};
const dragOutcome = () => {
const state = globalThis.continuityDrag;
globalThis.continuityDrag = globalThis.continuityDestination = null;
state?.end();
return { isHtmlDrag: Boolean(state?.start && !state.start.defaultPrevented), isDropped: Boolean(state?.isDropped) };
};
const inDocumentOf = (element, point) => {
const frames = [];
for (let frame = frameAround(element); frame; frame = frameAround(frame)) frames.unshift(frame);
return frames.reduce((at, frame) => into(frame, at), point);
};
const pointerEvent = (Type, element, kind, point, more = {}) => {
const { x, y } = inDocumentOf(element, point);
const buttons = kind.endsWith("up") ? 0 : 1;
const place = { clientX: x, clientY: y, button: 0, buttons, pointerId: 1, pointerType: "mouse", isPrimary: true };
const init = { bubbles: true, cancelable: true, composed: true, view: viewOf(documentOf(element)), ...place, ...more };
return dispatch(element, new Type(kind, init));
};
const domHover = () => {
const element = clickTargetOf(target());
const point = centreOf(element);
for (const kind of ["over", "enter", "move"]) {
const more = { buttons: 0, bubbles: kind !== "enter" };
pointerEvent(PointerEvent, element, `pointer${kind}`, point, more);
pointerEvent(MouseEvent, element, `mouse${kind}`, point, more);
}
return {};
};
const domHtmlDrag = (source, over, end) => {
const dataTransfer = new DataTransfer();
const fire = (element, kind) => pointerEvent(DragEvent, element, kind, end, { dataTransfer });
if (!fire(source, "dragstart")) return false;
fire(over, "dragenter");
if (!fire(over, "dragover")) fire(over, "drop");
fire(source, "dragend");
return true;
};
const domDrag = async (offset) => {
const source = target();
const start = centreOf(source);
const point = dropPoint(offset && { x: start.x + offset.dx, y: start.y + offset.dy });
if (point.problem) return point;
const under = (at) => deepestAt(at.x, at.y) ?? source;
const isAllowed = pointerEvent(PointerEvent, source, "pointerdown", start) && pointerEvent(MouseEvent, source, "mousedown", start);
const dragged = closest(source, "[draggable=true],a[href]:not([draggable=false]),img:not([draggable=false])");
const destination = offset ? under(point) : globalThis.continuityDestination;
if (isAllowed && dragged && domHtmlDrag(dragged, destination, point)) return {};
for (let step = 1; step <= DRAG_STEPS; step += 1) {
const share = step / DRAG_STEPS;
const at = { x: start.x + (point.x - start.x) * share, y: start.y + (point.y - start.y) * share };
const over = step === DRAG_STEPS ? destination : under(at);
pointerEvent(PointerEvent, over, "pointermove", at);
pointerEvent(MouseEvent, over, "mousemove", at);
if (!document.hidden) await sleep(16); // pages that are not seen wait a second
}
pointerEvent(PointerEvent, destination, "pointerup", point);
pointerEvent(MouseEvent, destination, "mouseup", point);
return {};
};
const NOTICES = "[role=alert],[role=status],[aria-live]:not([aria-live=off]),[class*=error i],[class*=alert i],[class*=invalid i],[class*=danger i],[class*=success i]";
const ERROR_CLASS = /error|alert|invalid|danger/i;
const SUCCESS_CLASS = /success/i;
const ERROR_WORDS = /sorry|error|invalid|incorrect|wrong|fail|rejected|denied|required|try again|unable|(could|can|was|were|is|are)(n['’]t| ?not)\b|fehler|ungültig|fehlgeschlagen|错误|失败|无效|有误|重试/iu;
const MAX_FORM_FIELDS = 200;
const MAX_TEXTS_SHOWN = 2000;
const isOpenField = (element) => visible(element) && !matches(element, ":disabled,[readonly],[aria-disabled=true]");
const fieldKey = (element) =>
`${tagOf(element)} ${attr(element, "type") ?? ""} ${attr(element, "name") || attr(element, "id") || attr(element, "placeholder") || attr(element, "aria-label") || ""}`;
const hasText = (element) => ["text", "rich"].includes(inputWay(element)) && (isNativeField(element) ? element.value : rawText(element)).trim() !== "";
const describeFields = (elements) => elements.filter(isOpenField).slice(0, MAX_FORM_FIELDS).map((element) => ({ key: fieldKey(element), hasText: hasText(element) }));
const formOf = (field) => (isNativeField(field) ? field.form : null) ?? closest(field, "form");
const fieldsOfForm = (field) => {
const form = formOf(field);
return form ? [...all(form, FIELDS)].filter((element) => formOf(element) === form) : [field];
};
const noticeKind = (element, text) => {
const names = attr(element, "class") ?? "";
if (ERROR_WORDS.test(text)) return "error";
if (SUCCESS_CLASS.test(names)) return "success";
return ERROR_CLASS.test(names) ? "error" : "";
};
const noticesShown = () => findRoots(document).flatMap(({ root }) => [...all(root, NOTICES)])
.filter((element) => visible(element) && !matches(element, FIELDS) && one(element, FIELDS) === null)
.map((element) => ({ element, text: lineOfText(element, 300) })).filter(({ text }) => text)
.slice(0, MAX_TEXTS_SHOWN).map(({ element, text }) => ({ text, kind: noticeKind(element, text) }));
const shownForm = () => {
const filled = globalThis.continuityField?.deref();
return {
form: filled?.isConnected ? describeFields(fieldsOfForm(filled)) : null,
fields: describeFields(findRoots(document).flatMap(({ root }) => [...all(root, FIELDS)])),
notices: noticesShown(),
lines: [...piecesShown().values()].filter(Boolean).slice(0, MAX_TEXTS_SHOWN).map((text) => ({ text: shorten(text, 300), kind: ERROR_WORDS.test(text) ? "error" : "" })),
isPending: isBusy() || loadersShown() > 0 || [...piecesShown().values()].some((text) => LOADING_LINE.test(text)),
};
};
const nodes = (globalThis.continuityNodes ??= { names: new WeakMap(), elements: new Map(), judged: new Map() });
const nameOfNode = (element) => {
if (!nodes.names.has(element)) {
const name = crypto.getRandomValues(new Uint32Array(4)).join("-");
nodes.names.set(element, name);
nodes.elements.set(name, new WeakRef(element));
}
return nodes.names.get(element);
};
const nodeNamed = (name) => nodes.elements.get(name)?.deref() ?? null;
const MAX_SUBMISSIONS = 5;
const MAX_NAME = 300;
const textMarks = (nodes.marks ??= new Map());
const markOf = (text) => {
if (!textMarks.has(text)) textMarks.set(text, crypto.getRandomValues(new Uint32Array(4)).join("-"));
return textMarks.get(text);
};
const bound = (text) => (text.length <= MAX_NAME ? text : `${cut(text, MAX_NAME)}… ${markOf(text)}`);
const COUNT = /(?<=\S\s*)\(\p{Nd}{1,4}\)$/u;
const CLOCK = /(?<!\p{Nd}|:)\p{Nd}{1,2}:\p{Nd}{2}:\p{Nd}{2}(?!\p{Nd}|:)/gu;
const MONEY = /\p{Sc}|\b(usd|eur|gbp|chf|jpy|cny|rmb|inr|aud|cad|kr|dollars?|euros?)\b|[元円원₽]/iu;
const mayCount = ({ role, link, frame, submits }) => role === "link" && /^https?:/.test(link) && link !== frame && !submits.length;
const withCountsAlike = (text, facts) => (!mayCount(facts) || MONEY.test(text) ? text : text.replace(COUNT, "(0)").replace(CLOCK, "0:00:00"));
const wordsToBind = (element, isNamedByText) => {
const named = isNamedByText ? [element] : isTextField(element) ? [] : renderedIn([element]).filter((node) => matches(node, USABLE));
const wordsIn = (node) => [...fieldLabels(node), ...["aria-label", "title", "alt"].map((name) => attr(node, name)),
matches(node, "input:is([type=button],[type=submit],[type=reset])") ? node.value : "", lineOfText(node, Infinity)];
return [...new Set(named.flatMap(wordsIn).map((text) => collapse(text ?? "").trim()).filter(Boolean))];
};
const withoutFragment = (address, element) => {
const url = URL.parse(address, baseOf(element));
if (!url) return "";
url.hash = "";
return url.href;
};
const addressOfDocument = (element) => withoutFragment(viewOf(documentOf(element)).location.href, element);
const TOKEN_NAME = /csrf|xsrf|token|nonce|viewstate|captcha/i;
const controlsOf = getter(HTMLFormElement.prototype, "elements");
const isServerToken = (field) => field.type === "hidden" && TOKEN_NAME.test(field.name) && /^[\w+/=.:-]{16,}$/.test(field.value);
const valuesOf = (field) => {
if (["checkbox", "radio"].includes(field.type)) return field.checked ? [field.value] : [];
return tagOf(field) === "select" ? [...field.selectedOptions].map(({ value }) => value) : [field.value];
};
const sentBy = (form, submitter, typed) => {
const fields = [...controlsOf(form)].filter((field) => matches(field, "input[name],select[name],textarea[name]") && field !== typed && !matches(field, ":disabled") &&
!["submit", "image", "button", "reset"].includes(field.type) && !isServerToken(field));
const pairs = fields.flatMap((field) => valuesOf(field).map((value) =>
[attr(field, "name"), field.type === "password" || isSecretField(field) ? (value ? `*** ${markOf(value)}` : "") : value]));
if (submitter && attr(submitter, "name")) pairs.unshift([attr(submitter, "name"), attr(submitter, "value") ?? ""]);
return bound(pairs.map(([name, value]) => `${name}=${value}`).join("; "));
};
const submissionOf = (form, submitter, typed) => {
const given = (name) => (submitter && attr(submitter, `form${name}`)) ?? attr(form, name) ?? "";
return {
by: submitter ? labelOf(submitter, typeOfElement(submitter), attributeNames(submitter)) : "",
method: (given("method") || "get").toLowerCase(), action: given("action") ? withoutFragment(given("action"), form) : addressOfDocument(form),
sent: sentBy(form, submitter, typed),
};
};
const renderedIn = (elements) => {
const found = new Set();
const roots = [...elements];
for (const root of roots) {
for (const node of [...(nodeKind(root) === ELEMENT ? [root] : []), ...all(root, "*")]) {
if (found.has(node)) continue;
found.add(node);
if (shadowOf(node)) roots.push(shadowOf(node));
if (tagOf(node) === "slot") roots.push(...assignedTo(node).filter((one_) => nodeKind(one_) === ELEMENT));
}
}
return [...found];
};
const submitterOf = (node) => [node, tagOf(node) === "label" ? node.control : null].find((one_) => one_ && submitsForm(one_));
const submittersOf = (element) => {
const nodes_ = renderedIn([element, ...(own(element, "labels") ?? [])]);
for (let node = element; node; node = renderedAround(node)) if (nodeKind(node) === ELEMENT) nodes_.unshift(node);
return [...new Set(nodes_.map(submitterOf).filter(Boolean))];
};
const firstSubmitter = (form) => [...all(rootNodeOf(form), "button,input")].find((one_) => submitsForm(one_) && one_.form === form);
const formsByEnter = (element) => [...new Set(renderedIn([element])
.filter((node) => !matches(node, "button,a[href],summary,input:is([type=button],[type=reset],[type=submit],[type=image],[type=file])"))
.map((node) => own(node, "form") ?? (node === element ? closest(node, "form") : null)).filter(Boolean))];
const waysToSubmit = (element, way) => {
if (way === "set") return [];
const byEnter = way === "enter" ? formsByEnter(element).map((form) => [form, firstSubmitter(form)]) : [];
if (byEnter.length && isTextField(element)) return byEnter;
return [...byEnter, ...submittersOf(element).map((submitter) => [submitter.form, submitter])];
};
const submissions = (element, way, typed = null) => waysToSubmit(element, way).slice(0, MAX_SUBMISSIONS).map(([form, submitter]) => submissionOf(form, submitter, typed));
const submittedBy = (element, way) => waysToSubmit(element, way).map(([form, submitter]) => submitter ?? form);
const isSentByEnter = (element, way) => way === "enter" && isTextField(element) && tagOf(element) !== "select";
const factsOf = (element, way, typed) => {
const control = hiddenControlOf(element) ?? element;
const type = typeOfElement(control);
const link = closest(element, "a[href],area[href]");
const isNamedByText = matches(control, "a,button,summary,label,[role]") && !isTextField(control);
const facts = {
role: kindWord(control, type), name: labelOf(control, type, attributeNames(control)) || (isTextField(control) ? textBefore(control) : ""),
submits: submissions(element, way, typed), sends: isSentByEnter(element, way),
link: link ? withoutFragment(attr(link, "href"), link) : "", frame: addressOfDocument(element), page: withoutFragment(location.href, document),
};
return { ...facts, text: bound(wordsToBind(control, isNamedByText).map((text) => withCountsAlike(text, facts)).join(" | ")) };
};
const stable = (facts) => ({ ...facts, name: withCountsAlike(facts.name, facts) });
const withoutSent = (facts) => ({ ...facts, submits: facts.submits.map((one_) => ({ ...one_, sent: "" })) });
const changeOf = (element, isBefore) => {
const judged = nodes.judged.get(nameOfNode(element));
if (!judged) return { role: ["not judged", ""] };
const facts = factsOf(element, judged.way, judged.typed);
const [before, after] = [judged.facts, facts].map(stable).map((one_) => (isBefore ? one_ : withoutSent(one_)));
const differing = Object.keys(after).filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
return differing.length ? Object.fromEntries(differing.map((name) => [name, [judged.facts[name], facts[name]]])) : null;
};
const expectJudged = (element, locator) => {
globalThis.continuityExpected = typeof locator?.compares === "boolean" ? { element, compares: locator.compares } : null;
};
const differenceFrom = (locator, expected, element) => {
const isSearched = locator === null || locator.mode === "semantic" || locator.mode === "selector";
expectJudged(element, isSearched ? expected : locator);
const { node } = (isSearched && expected) || {};
return node && node !== nameOfNode(element) ? { element: [nodes.judged.get(node)?.facts.name ?? "", labelOf(element, typeOfElement(element), attributeNames(element))] } : null;
};
const unjudgedSubmission = (element) => {
const judged = nodes.judged.get(nameOfNode(element));
if (!judged || submittedBy(element, judged.way).every((one_) => judged.submittedBy.has(one_))) return null;
return { submits: [judged.facts.submits, submissions(element, judged.way)] };
};
const changeOfExpected = (isBefore = false) => {
const { element, compares } = globalThis.continuityExpected ?? {};
if (!element) return null;
return (compares ? changeOf(element, isBefore) : null) ?? unjudgedSubmission(element);
};
const expectedChange = () => ({ changed: changeOfExpected() });
const linesOf = (element) => {
const secrets = findSecrets(findRoots(document).map(({ root }) => root));
const clickId = clickIds.ids.get(element);
const line = masked(elementWords(element, secrets), secrets.values).toWellFormed();
return { line: clickId ? `[${clickId}] ${line}` : line, secrets };
};
const judgedElement = (element, way, typed) => {
const facts = factsOf(element, way, typed);
nodes.judged.set(nameOfNode(element), { way, typed, facts, submittedBy: new WeakSet(submittedBy(element, way)) });
const { line, secrets } = linesOf(element);
const shown = JSON.parse(JSON.stringify(facts, (key, value) => (typeof value === "string" ? masked(value, secrets.values).toWellFormed() : value)));
return { outcome: "judged", node: nameOfNode(element), line, facts: shown, stable: stable(shown), title: titleOf(document), isSecret: fieldInfo(element).isSecret };
};
const usedAt = ({ x, y }) => {
const hit = deepestAt(x, y);
for (let node = hit; node; node = renderedAround(node)) if (nodeKind(node) === ELEMENT && matches(node, USABLE)) return node;
return hit;
};
const asFound = (element, reason) => (element ? { chosen: { element } } : { reason, candidates: [] });
const FINDERS = {
point: ({ point }) => asFound(usedAt(point), "outside"),
keys: ({ locator }) => {
if (!locator) return asFound(deepActiveElement() ?? rootOf(document), "no_match");
const { element, problem } = referenced(locator);
return { ...asFound(element, problem), isFinal: problem === "two_elements" || problem === "gone" };
},
};
const judgeOnce = (request) => {
const { locator, purpose, way, to, isSubmit } = request;
const { chosen, reason, candidates, isFinal, key } = FINDERS[purpose] ? FINDERS[purpose](request)
: locator ? search(locator, purpose, isSubmit) : defaultSubmit();
if (!chosen) return { outcome: reason === "bad_xpath" ? "bad_selector" : "missing", reason, candidates, isFinal };
const destination = to ? referenced(to) : {};
if (destination.problem) return { outcome: "missing", reason: destination.problem, candidates: [], isFinal: destination.problem !== "no_match" };
const judged = judgedElement(chosen.element, key ? "enter" : way, purpose === "field" ? chosen.element : null);
return { ...judged, to: destination.element ? { node: nameOfNode(destination.element), line: linesOf(destination.element).line } : null };
};
const judge = async (request) => {
const deadline = now() + request.timeoutMs;
try {
for (;;) {
const answer = judgeOnce(request);
if (answer.outcome === "judged" || answer.isFinal || now() >= deadline) return answer;
await sleep(Math.min(100, Math.max(1, deadline - now())));
}
} catch (error) {
if (error instanceof DOMException && error.name === "SyntaxError") return { outcome: "bad_selector" };
throw error;
}
};
const expectAt = ({ node, compares, x, y }) => {
const element = nodeNamed(node);
if (!element || !isHere(element)) return { problem: "gone" };
const hit = deepestAt(x, y);
if (!hit || !activates(element, hit)) return { problem: "moving" };
expectJudged(element, { compares });
const changed = changeOfExpected(true);
if (changed) return { problem: "changed", changed };
globalThis.continuityJudgedPoint = element; // for pointReady
return {};
};
const SET_TYPES = new Set(["date", "time", "datetime-local", "month", "week", "color", "range"]);
const YES = new Set(["true", "on", "yes", "y", "1", "checked", "selected", "是", "对", "选中", "勾选", "开", "同意"]);
const NO = new Set(["false", "off", "no", "n", "0", "unchecked", "", "否", "不", "不选", "取消勾选", "关"]);
const MAX_OPTIONS_LISTED = 50;
const target = () => globalThis.continuityTarget;
const inputWay = (element) => {
const tag = tagOf(element);
if (tag === "select") return "choice";
const type = typeOfElement(element);
if (type === "radio") return "radio";
if (TOGGLES.has(type)) return "toggle";
if (tag === "input") return SET_TYPES.has(element.type) ? "set" : "text";
if (tag === "textarea") return "text";
return element.isContentEditable ? "rich" : "none";
};
const fieldInfo = (element) => {
if (!isFillable(element)) return { way: "none", isSecret: false };
return { way: inputWay(element), isSecret: matches(element, FIELDS) && isSecretField(element) };
};
const isChecked = (element) =>
tagOf(element) === "input" ? element.checked : attr(element, "aria-checked") === "true";
const focus = () => {
const element = target();
element.focus({ preventScroll: true });
globalThis.continuityField = new WeakRef(element);
if (isNativeField(element)) element.select?.();
else viewOf(documentOf(element)).getSelection().selectAllChildren(element);
return { isFocused: rootNodeOf(element).activeElement === element };
};
const dispatchChange = (element) => {
dispatch(element, new Event("input", { bubbles: true, composed: true }));
dispatch(element, new Event("change", { bubbles: true }));
};
const acceptsValue = (element, value) => {
if (inputWay(element) !== "set") return true;
const trial = element.cloneNode();
trial.value = value;
return trial.value !== "";
};
const setValue = (value) => {
const element = target();
if (value && !acceptsValue(element, value)) return { value: "" };
globalThis.continuityField = new WeakRef(element);
element.focus({ preventScroll: true });
element.value = value;
dispatchChange(element);
return { value: element.value };
};
const exactOption = (options, value) =>
options.find(({ key }) => key === value) ?? options.find(({ label }) => fold(label) === fold(value)) ?? null;
const bestOption = (options, value) => {
const exact = exactOption(options, value);
if (exact) return exact;
const wanted = wordsOf(value);
const fits = options.map((option) => ({ option, score: similarity(wanted, wordsOf(option.label)) }));
const best = fits.reduce((one_, other) => (other.score > one_.score ? other : one_), { score: 0, option: null });
return best.score >= 0.6 ? best.option : null;
};
const usableOptions = (element) => [...element.options].filter((option) => !option.disabled && !matches(option, "optgroup:disabled *"))
.map((option) => ({ option, key: option.value, label: collapse(option.label).trim() }));
const listed = (options) => options.slice(0, MAX_OPTIONS_LISTED).map(({ label }) => shorten(label, 60));
const chooseOption = (value) => {
const element = target();
const options = usableOptions(element);
const found = bestOption(options, value);
if (!found) return { missing: listed(options) };
globalThis.continuityField = new WeakRef(element);
element.focus({ preventScroll: true });
if (element.multiple) for (const option of element.options) option.selected = option === found.option;
else element.selectedIndex = found.option.index;
dispatchChange(element);
return { value: found.label };
};
const selectOptions = (wanted) => {
const element = target();
if (tagOf(element) !== "select") return { problem: "not_a_select" };
if (!element.multiple && wanted.length !== 1) return { problem: "one_option" };
const options = usableOptions(element);
const found = wanted.map((value) => exactOption(options, value));
if (found.includes(null)) return { missing: listed(options) };
globalThis.continuityField = new WeakRef(element);
element.focus({ preventScroll: true });
const chosen = new Set(found.map(({ option }) => option));
if (element.multiple) for (const { option } of options) option.selected = chosen.has(option);
else element.selectedIndex = found[0].option.index;
dispatchChange(element);
return { selected: [...element.selectedOptions].map((option) => shorten(collapse(option.label).trim(), 200)) };
};
const needsClick = (value) => {
const element = target();
const folded = fold(value);
if (inputWay(element) === "toggle" || YES.has(folded)) {
if (!YES.has(folded) && !NO.has(folded)) return { missing: ["true", "false"] };
return { needsClick: isChecked(element) !== YES.has(folded), before: String(isChecked(element)) };
}
const group = tagOf(element) === "input" && element.name
? [...all(element.form ?? rootNodeOf(element), "input[type=radio]")].filter((radio) => radio.name === element.name)
: [element];
const options = group.filter((radio) => !matches(radio, ":disabled")).map((radio) =>
({ option: radio, key: radio.value ?? "", label: labelOf(radio, "radio", attributeNames(radio)) }));
const found = bestOption(options, value);
if (!found) return { missing: options.slice(0, MAX_OPTIONS_LISTED).map(({ label }) => shorten(label, 60)) };
globalThis.continuityTarget = found.option;
return { needsClick: !isChecked(found.option), before: "false" };
};
const reachTarget = async () => {
const clickTarget = clickTargetOf(target());
const point = await clickPointOf(clickTarget);
if (!point.reason) guard(clickTarget);
return point;
};
const shownValue = () => {
const element = target();
const way = inputWay(element);
if (way === "toggle" || way === "radio") return { value: String(isChecked(element)) };
return { value: isNativeField(element) ? element.value : rawText(element) };
};
const refusedFields = () => ({
refused: findRoots(document).flatMap(({ root }) => [...all(root, "[aria-invalid=true],:user-invalid")])
.filter((element) => visible(element) && matches(element, FIELD)).slice(0, 20)
.map((element) => {
const named = (attr(element, "aria-errormessage") ?? attr(element, "aria-describedby") ?? "").split(/\s+/).filter(Boolean);
const notes = named.map((id) => rootNodeOf(element).getElementById?.(id)).filter(Boolean).map((note) => lineOfText(note, 200));
return { field: describeElement(element).label, says: notes.join(" ").trim() || element.validationMessage || "" };
}),
});
const hashOf = (content) => {
let [high, low] = [0xdeadbeef, 0x41c6ce57];
for (let at = 0; at < content.length; at += 1) {
const code = content.charCodeAt(at);
high = Math.imul(high ^ code, 2654435761);
low = Math.imul(low ^ code, 1597334677);
}
return `${(high >>> 0).toString(16)}-${(low >>> 0).toString(16)}-${content.length}`;
};
const TIME_WORDS = /\b(am|pm|utc|gmt|cest|cet|(mon|tues?|wed(nes)?|thu(rs)?|fri|sat(ur)?|sun)(day)?|(jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*)\b/gi;
const MAX_TIMES = 2;
const timesShown = () => {
const times = [...piecesShown().values()].filter((text) => /\d:\d\d:\d\d/.test(text) && /^[\d\s:.,+/()TZ-]*$/.test(text.replace(TIME_WORDS, "")));
return times.length <= MAX_TIMES ? times : [];
};
const fingerprint = () => {
const content = findRoots(document).map(({ root }) => {
const links = [...all(root, "a[href],img[src]")].map((node) => URL.parse(attr(node, "href") ?? attr(node, "src"), location.href))
.filter((address) => address && address.pathname !== location.pathname).map((address) => address.href).join(" ");
const body = nodeKind(root) === DOCUMENT ? bodyOf(root) : null;
return `${body ? body.innerText : rawText(root)} ${links}`;
}).join(" ");
return { fingerprint: hashOf(timesShown().reduce((text, time) => text.replace(time, ""), content)) };
};
const busy = () => ({ busy: isBusy() });
const COMMANDS = {
index, observe, markup, domClick, domType, domEnter, fingerprint, locate, pressReady, pointReady, pressReport, clickOutcome, focus, setValue, chooseOption, needsClick, reachTarget, shownValue, refusedFields, shownForm,
scroll, findText, waitForText, shownState, shownChange, watchTexts, busy, drawNumbers, eraseNumbers, selectOptions, hoverPoint, isHovered, focusForKeys, keysReady, dragDestination,
judge, expectAt, expectedChange, dropPoint, watchDrag, pressOutcome, htmlDrag, dragOutcome, domHover, domKey, domDrag,
};
const NEEDS_TARGET = new Set([
"domClick", "domType", "domEnter", "focus", "setValue", "chooseOption", "needsClick", "reachTarget", "shownValue",
"selectOptions", "hoverPoint", "isHovered", "watchDrag", "dropPoint", "pressReady", "pressOutcome", "htmlDrag", "dragOutcome", "domHover", "domKey", "domDrag",
]);
const runCommand = async ({ command, args }) =>
NEEDS_TARGET.has(command) && !target() ? '{"isStale":true}' : JSON.stringify(await COMMANDS[command](args)).replace(/\\u0000/g, "");
return runCommand(given);
};
