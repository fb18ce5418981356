// Runs in the page's own world before the page's scripts, in each frame whose origin is not the page's. The page could put
// such a frame under the mouse, or give it the focus; so the frame gets no input, except while a person has the page.
(() => {
  const isForeign = () => {
    try {
      for (let view = window; view !== view.top; view = view.parent) if (!view.frameElement) return true;
      return false;
    } catch {
      return true; // a document around it is of another origin
    }
  };
  if (!isForeign()) return;
  const call = Function.prototype.call;
  const listen = call.bind(EventTarget.prototype.addEventListener);
  const cancel = call.bind(Event.prototype.preventDefault);
  const hide = call.bind(Event.prototype.stopImmediatePropagation);
  const isTrusted = call.bind(Object.getOwnPropertyDescriptor(new Event(""), "isTrusted").get);
  const now = performance.now.bind(performance);
  const OPEN_MS = 3000; // each input of a person begins it again
  let openUntil = 0;

  const withhold = (event) => {
    if (!isTrusted(event) || now() < openUntil) return;
    hide(event);
    cancel(event);
  };
  const KINDS = [
    "pointerdown", "pointerup", "mousedown", "mouseup", "click", "auxclick", "dblclick", "contextmenu", "keydown", "keypress", "keyup",
    "beforeinput", "dragstart", "dragenter", "dragover", "drop", "pointermove", "pointerover", "pointerout", "pointerenter", "pointerleave",
    "mousemove", "mouseover", "mouseout", "mouseenter", "mouseleave",
  ];
  const change = (event) => {
    hide(event);
    openUntil = event.type === "__TOKEN__opened" ? now() + OPEN_MS : 0;
  };
  const listenAll = () => {
    for (const kind of KINDS) listen(window, kind, withhold, { __proto__: null, capture: true, passive: false });
    for (const kind of ["__TOKEN__opened", "__TOKEN__closed"]) listen(window, kind, change, { __proto__: null, capture: true });
  };
  listenAll();
  // document.open removes the listeners of the window.
  new MutationObserver(listenAll).observe(document, { childList: true });
})();
