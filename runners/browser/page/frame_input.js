// In the worker's browser, frames of other origins get input only while a person acts on the page.
const OPEN_MS = 3000; // each input of a person begins it again
const now = performance.now.bind(performance);
let openUntil = 0;
const change = (milliseconds) => (event) => {
  hide(event);
  openUntil = now() + milliseconds;
};
if (isForeign()) withholdInput(() => now() >= openUntil, { __proto__: null, "__TOKEN__opened": change(OPEN_MS), "__TOKEN__closed": change(0) });
