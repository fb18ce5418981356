import assert from "node:assert/strict";
import { test } from "node:test";

import { announce, consume, forget, settle } from "../../../../runners/paired_browser/extension/expected_input.js";

const MOUSE = "Input.dispatchMouseEvent";
const press = (x = 10, y = 20, button = 0) => ({ kind: "press", x, y, button });
const announcePress = (tabId) => announce(tabId, MOUSE, { type: "mousePressed", x: 10, y: 20, button: "left" });

test("an announced press is the extension's own, a second one is a person's", () => {
  announcePress(1);
  assert.equal(consume(1, press()), true);
  assert.equal(consume(1, press()), false);
});

test("a press elsewhere, with another button or in another tab is a person's", () => {
  announcePress(2);
  assert.deepEqual([consume(2, press(10, 26)), consume(2, press(10, 20, 2)), consume(3, press())], [false, false, false]);
  assert.equal(consume(2, press(11, 19)), true);
});

test("a frame that does not know its place reports a press without coordinates", () => {
  announcePress(4);
  assert.equal(consume(4, { kind: "press", button: 0 }), true);
});

test("each key of a text is consumed once, in any order", () => {
  for (const key of ["a", "b", "a"]) announce(5, "Input.dispatchKeyEvent", { type: "keyDown", key, code: `Key${key.toUpperCase()}` });
  const reported = ["a", "a", "b", "a", "b"].map((key) => consume(5, { kind: "key", key, code: `Key${key.toUpperCase()}` }));
  assert.deepEqual(reported, [true, true, true, false, false]);
});

test("releases and inserted texts announce nothing", async () => {
  const announced = [
    announce(6, MOUSE, { type: "mouseReleased", x: 1, y: 1, button: "left" }),
    announce(6, "Input.dispatchKeyEvent", { type: "keyUp", key: "a" }),
    announce(6, "Input.insertText", { text: "a" }),
    announce(6, "Input.setIgnoreInputEvents", { ignore: false }),
  ];
  assert.deepEqual(announced.map(({ events }) => events), [[], [], [], []]);
});

test("an event that no frame reported is withdrawn once all frames have answered, and not before", async () => {
  let answered;
  const asking = new Promise((resolve) => (answered = resolve));
  const settling = settle(announce(7, MOUSE, { type: "mouseWheel", x: 5, y: 5, deltaY: 10 }), () => asking);
  assert.equal(consume(7, { kind: "wheel", x: 5, y: 5 }), true);
  const other = settle(announce(7, MOUSE, { type: "mouseWheel", x: 5, y: 5, deltaY: 10 }), () => asking);
  answered();
  await Promise.all([settling, other]);
  assert.equal(consume(7, { kind: "wheel", x: 5, y: 5 }), false);
});

test("settling asks no frame if all was reported", async () => {
  const announced = announcePress(8);
  consume(8, press());
  await settle(announced, () => assert.fail("asked"));
});

test("a closed tab's events are forgotten", () => {
  announcePress(9);
  forget(9);
  assert.equal(consume(9, press()), false);
});
