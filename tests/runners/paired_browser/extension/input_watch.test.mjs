// The content script that reports input, with events of touch screens and pens.
import assert from "node:assert/strict";
import { test } from "node:test";

const listeners = new Map();
globalThis.window = {
  addEventListener: (type, listener) => listeners.set(type, listener),
  removeEventListener: (type) => listeners.delete(type),
};
window.top = window;
await import("../../../../runners/paired_browser/extension/overlay/input_watch.js");

function watched(mode = "watching") {
  const reported = [];
  new globalThis.ContinuityInputWatch({ report: (event) => reported.push(event) }).set(mode);
  const receive = (type, fields) => listeners.get(type)?.({ type, isTrusted: true, clientX: 5, clientY: 6, ...fields });
  return { reported, receive };
}

test("the beginning of a touch or of a pen's stroke is reported like a press of the mouse", () => {
  for (const pointerType of ["touch", "pen", "mouse"]) {
    const { reported, receive } = watched();
    receive("pointerdown", { pointerType, button: 0 });
    assert.deepEqual(reported, [{ kind: "press", button: 0, x: 5, y: 6 }]);
  }
});

test("a finger that moves is not reported again; a mouse is", () => {
  const { reported, receive } = watched();
  receive("pointermove", { pointerType: "touch", screenX: 1, screenY: 1 });
  receive("pointermove", { pointerType: "mouse", screenX: 1, screenY: 1 });
  assert.deepEqual(reported.map(({ kind }) => kind), ["move"]);
});

test("a touch that a script of the page makes is not reported", () => {
  const { reported, receive } = watched();
  receive("pointerdown", { pointerType: "touch", button: 0, isTrusted: false });
  assert.deepEqual(reported, []);
});

test("during a takeover a touch is counted; otherwise nothing is reported", () => {
  const { reported, receive } = watched("counting");
  receive("pointerdown", { pointerType: "touch", button: 0 });
  assert.equal(reported.length, 1);
  const other = watched("off");
  other.receive("pointerdown", { pointerType: "touch", button: 0 });
  assert.equal(other.reported.length, 0);
});

test("it listens from the beginning; what comes before its mode is known is reported then", () => {
  const reported = [];
  const watch = new globalThis.ContinuityInputWatch({ report: (event) => reported.push(event) });
  listeners.get("keydown")({ type: "keydown", isTrusted: true, key: "a", code: "KeyA" });
  assert.deepEqual(reported, []);
  watch.set("watching");
  assert.deepEqual(reported.map(({ kind }) => kind), ["key"]);
});
