{
const call = Function.prototype.call;
const listen = call.bind(EventTarget.prototype.addEventListener);
const cancel = call.bind(Event.prototype.preventDefault);
const hide = call.bind(Event.prototype.stopImmediatePropagation);
const isTrusted = call.bind(Object.getOwnPropertyDescriptor(new Event(""), "isTrusted").get);
const KINDS = [
"pointerdown", "pointerup", "mousedown", "mouseup", "click", "auxclick", "dblclick", "contextmenu", "keydown", "keypress", "keyup",
"beforeinput", "dragstart", "dragenter", "dragover", "drop", "pointermove", "pointerover", "pointerout", "pointerenter", "pointerleave",
"mousemove", "mouseover", "mouseout", "mouseenter", "mouseleave",
];
const isForeign = () => {
try {
for (let view = window; view !== view.top; view = view.parent) if (!view.frameElement) return true;
return false;
} catch {
return true; // a document around it is of another origin
}
};
const withholdInput = (isWithheld, more = {}) => {
const withhold = (event) => {
if (!isTrusted(event) || !isWithheld()) return;
hide(event);
cancel(event);
};
const listenAll = () => {
for (const kind of KINDS) listen(window, kind, withhold, { __proto__: null, capture: true, passive: false });
for (const kind in more) listen(window, kind, more[kind], { __proto__: null, capture: true });
};
listenAll();
new MutationObserver(listenAll).observe(document, { childList: true }); // document.open removes the listeners of the window
};
const UNTOLD_MS = 1000;
const startedAt = performance.now();
const isUntold = () => globalThis.continuityWithholds === undefined && performance.now() < startedAt + UNTOLD_MS;
if (isForeign() && !globalThis.continuityFrameInput) {
globalThis.continuityFrameInput = true; // it may be injected twice
withholdInput(() => globalThis.continuityWithholds === true || isUntold());
}
}
