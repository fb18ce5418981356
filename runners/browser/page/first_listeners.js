// Runs in the isolated world before the page's scripts, so that its listeners are the first ones: a page that stops the
// events of a press hides them from its own scripts only. What is pressed is checked by the guard of target.js.
(() => {
  const check = (event) => globalThis.continuityGuard?.check(event);
  for (const type of ["pointerdown", "mousedown", "pointerup", "mouseup", "click"]) {
    window.addEventListener(type, check, { capture: true, passive: false });
  }
})();
