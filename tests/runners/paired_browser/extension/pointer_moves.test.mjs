import assert from "node:assert/strict";
import { test } from "node:test";

import { PointerMoves } from "../../../../runners/paired_browser/extension/takeover/pointer_moves.js";

const TAB = 1;
const at = (screenX, screenY) => ({ screenX, screenY });

function movesWithTimer() {
  const timers = [];
  const moves = new PointerMoves({ setTimer: (call) => timers.push(call), clearTimer: () => {} });
  return { moves, rest: () => timers.at(-1)() };
}

test("a mouse that rests while the page moves under it does not take over", () => {
  const { moves } = movesWithTimer();
  assert.deepEqual([at(10, 10), at(10, 10), at(11, 9)].map((event) => moves.isMovement(TAB, event)), [false, false, false]);
});

test("a movement of more than a few pixels takes over, also a slow one", () => {
  const { moves } = movesWithTimer();
  const slowly = [10, 11, 12, 13, 14].map((x) => moves.isMovement(TAB, at(x, 10)));
  assert.deepEqual(slowly, [false, false, false, false, true]);
});

test("the first event after the mouse was elsewhere only says where it is", () => {
  const { moves } = movesWithTimer();
  moves.isMovement(TAB, at(10, 10));
  moves.lose(TAB);
  assert.deepEqual([moves.isMovement(TAB, at(400, 300)), moves.isMovement(TAB, at(410, 300))], [false, true]);
});

test("the hand that pressed Resume may leave the button; once it has rested, a movement takes over", () => {
  const { moves, rest } = movesWithTimer();
  moves.leave(TAB);
  assert.deepEqual([0, 50, 100].map((x) => moves.isMovement(TAB, at(x, 0))), [false, false, false]);
  rest();
  assert.deepEqual([moves.isMovement(TAB, at(101, 0)), moves.isMovement(TAB, at(150, 0))], [false, true]);
});

test("the hand that pressed Resume has left the button when the mouse left the page", () => {
  const { moves } = movesWithTimer();
  moves.leave(TAB);
  moves.lose(TAB);
  assert.deepEqual([moves.isMovement(TAB, at(0, 0)), moves.isMovement(TAB, at(9, 0))], [false, true]);
});
