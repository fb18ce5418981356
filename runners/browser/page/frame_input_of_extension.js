// In a paired browser, frames of other origins get no input while the extension sends some (overlay/frame.js says when). A
// document that is new is informed a moment later: until then it gets none.
const UNTOLD_MS = 1000;
const startedAt = performance.now();
const isUntold = () => globalThis.continuityWithholds === undefined && performance.now() < startedAt + UNTOLD_MS;
if (isForeign() && !globalThis.continuityFrameInput) {
  globalThis.continuityFrameInput = true; // it may be injected twice
  withholdInput(() => globalThis.continuityWithholds === true || isUntold());
}
