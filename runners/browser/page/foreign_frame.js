// In a frame whose origin is not the page's: withhold input. The page could put such a frame under the mouse, or give it the
// focus. It runs before the scripts of the frame, whose changes to built-ins do not affect it.
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
// Withhold the events of input while `isWithheld()`. `more` {event name: listener} are listened to in the same way.
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
