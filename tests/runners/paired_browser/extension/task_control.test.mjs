import assert from "node:assert/strict";
import { test } from "node:test";

import { TaskControl } from "../../../../runners/paired_browser/extension/takeover/task_control.js";

const TASK = "task_1";

// A task that works in tab 7; `answers` are the acks of the server, an Error instead of one is a lost connection.
async function working({ answers = [], stored = {} } = {}) {
  const sent = [];
  const timers = [];
  const connection = {
    request: async (message) => {
      sent.push(message);
      const answer = answers.shift() ?? { ok: true };
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  const storage = { get: async () => stored, set: async (values) => Object.assign(stored, structuredClone(values)) };
  const control = new TaskControl({ connection, storage, setTimer: (call) => timers.push(call) });
  await control.loaded;
  control.receiveStatus({ taskId: TASK, status: "running", title: "Compare prices" });
  control.actionStarted(TASK, 7);
  return { control, sent, timers, stored };
}

const shown = (control) => control.shownIn(TASK, 7);

test("an action is shown in its tab only, and the task is hidden between actions", async () => {
  const { control } = await working();
  assert.deepEqual([shown(control), control.shownIn(TASK, 8)], ["ongoing", "hidden"]);
  control.actionEnded(TASK);
  assert.deepEqual([shown(control), control.isWatched(TASK)], ["hidden", true]);
});

test("a task that waits for its next message, or has ended, shows nothing", async () => {
  const { control } = await working();
  control.actionEnded(TASK);
  control.receiveStatus({ taskId: TASK, status: "ongoing" });
  assert.deepEqual([shown(control), control.isWatched(TASK)], ["idle", false]);
  control.receiveStatus({ taskId: TASK, status: "completed" });
  assert.equal(control.get(TASK), undefined);
});

test("a task that waits for an approval shows it, and is not watched; its next action ends that", async () => {
  const { control, stored } = await working();
  const waitsFor = { type: "confirmation", act: "submit", host: "shop.example" };
  control.actionEnded(TASK);
  control.receiveStatus({ taskId: TASK, status: "ongoing", waitsFor });
  assert.deepEqual([shown(control), control.isShown(TASK), control.isWatched(TASK)], ["waiting", true, false]);
  assert.deepEqual((await working({ stored })).control.get(TASK).waitsFor, null); // an action has started there
  control.receiveStatus({ taskId: TASK, status: "ongoing" });
  assert.deepEqual([shown(control), control.isShown(TASK)], ["idle", false]);
});

test("a takeover counts before the server confirms it, once", async () => {
  const { control, sent } = await working();
  const taking = control.takeOver(TASK, "input", "press");
  assert.deepEqual([control.isTakenOver(TASK), shown(control)], [true, "takeover"]);
  await Promise.all([taking, control.takeOver(TASK, "input", "key")]);
  assert.deepEqual(sent, [{ type: "takeover", taskId: TASK, reason: "input", counts: { clicks: 1 } }]);
});

test("a status that the server sent before it knew of the takeover does not end it", async () => {
  const { control } = await working();
  const taking = control.takeOver(TASK, "input", "move");
  control.receiveStatus({ taskId: TASK, status: "running" });
  assert.equal(control.isTakenOver(TASK), true);
  await taking;
  control.receiveStatus({ taskId: TASK, status: "takeover" });
  control.receiveStatus({ taskId: TASK, status: "running" }); // resumed in the admin
  assert.equal(control.isTakenOver(TASK), false);
});

test("a takeover without a connection is sent after the next activation, by a new service worker too", async () => {
  const first = await working({ answers: [new Error("not connected")] });
  await first.control.takeOver(TASK, "input", "key");
  const second = await working({ stored: first.stored });
  await second.control.receiveActivation({ tasks: [{ taskId: TASK, status: "running", title: "" }] });
  assert.deepEqual(second.sent, [{ type: "takeover", taskId: TASK, reason: "input" }]);
  assert.equal(second.control.isTakenOver(TASK), true);
});

test("a takeover that the server refuses ends, unless the page is taken over already", async () => {
  const conflict = { ok: false, error: { code: "CONFLICT", message: "no run" } };
  const { control } = await working({ answers: [conflict] });
  await control.takeOver(TASK, "input", "key");
  assert.equal(control.isTakenOver(TASK), false);
});

test("a person keeps the page that the server refuses to give, and the takeover is sent again", async () => {
  const denied = { ok: false, error: { code: "POLICY_DENIED", message: "A rule denies it." } };
  const { control, sent } = await working({ answers: [denied, new Error("closed")] });
  await control.takeOver(TASK, "input", "key");
  await control.stop(TASK);
  control.receiveStatus({ taskId: TASK, status: "running" });
  assert.deepEqual([control.isTakenOver(TASK), control.get(TASK).problem], [true, "offline"]);
  await control.receiveActivation({ tasks: [{ taskId: TASK, status: "running" }] });
  assert.deepEqual(sent.map(({ type }) => type), ["takeover", "stop", "takeover"]);
});

test("resume gives the page back when the server agrees, and says why it does not", async () => {
  const refusal = { ok: false, error: { code: "CONFLICT", message: "The time is up." } };
  const { control } = await working({ answers: [{ ok: true }, refusal, new Error("closed"), { ok: true }] });
  await control.takeOver(TASK, "button");
  control.receiveStatus({ taskId: TASK, status: "takeover" });
  await control.resume(TASK);
  assert.deepEqual([control.isTakenOver(TASK), control.get(TASK).problem], [true, "The time is up."]);
  await control.resume(TASK);
  assert.deepEqual([control.isTakenOver(TASK), control.get(TASK).problem], [true, "offline"]);
  await control.resume(TASK);
  assert.equal(control.isTakenOver(TASK), false);
});

test("a task that the server does not know is dropped", async () => {
  const { control } = await working({ answers: [{ ok: false, error: { code: "NOT_FOUND", message: "" } }] });
  await control.takeOver(TASK, "input", "key");
  assert.equal(control.get(TASK), undefined);
});

test("what a person does is sent as counts and addresses without a query, at most once in five seconds", async () => {
  const { control, sent, timers } = await working();
  await control.takeOver(TASK, "input", "move");
  for (const kind of ["press", "key", "key", "wheel", "text", "move"]) control.count(TASK, kind);
  control.countNavigation(TASK, "https://shop.example/cart?user=ann#top");
  assert.deepEqual([sent.length, timers.length], [1, 1]);
  await timers[0]();
  assert.deepEqual(sent[1], {
    type: "activity", taskId: TASK, counts: { clicks: 1, keys: 2, wheels: 1, texts: 1, navigations: 1 }, navigations: ["https://shop.example/cart"],
  });
});

test("counts that were not sent yet go before the resume", async () => {
  const { control, sent } = await working();
  await control.takeOver(TASK, "input", "move");
  control.count(TASK, "key");
  await control.resume(TASK);
  assert.deepEqual(sent.map(({ type }) => type), ["takeover", "activity", "resume"]);
});

test("tasks that an activation does not list are dropped", async () => {
  const { control } = await working();
  await control.receiveActivation({ tasks: [{ taskId: "task_2", status: "takeover", title: "Other" }] });
  assert.deepEqual([control.get(TASK), control.isTakenOver("task_2")], [undefined, true]);
});
