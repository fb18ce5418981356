(() => {
const check = (event) => globalThis.continuityGuard?.check(event);
for (const type of ["pointerdown", "mousedown", "pointerup", "mouseup", "click"]) {
window.addEventListener(type, check, { capture: true, passive: false });
}
})();
