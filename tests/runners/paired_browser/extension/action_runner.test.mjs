import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.chrome = { webNavigation: {}, tabs: {}, windows: {} };
const { ActionRecords } = await import("../../../../runners/paired_browser/extension/action_records.js");
const { ActionRunner, failureOf } = await import("../../../../runners/paired_browser/extension/action_runner.js");
const { cdpUnavailable, TimedOut } = await import("../../../../runners/paired_browser/extension/failures.js");

function fakeStorage(stored = {}) {
  return {
    stored,
    get: async (key) => (key === null ? structuredClone(stored) : { [key]: structuredClone(stored[key]) }),
    set: async (values) => Object.assign(stored, structuredClone(values)),
    remove: async (keys) => keys.forEach((key) => delete stored[key]),
    getBytesInUse: async () => JSON.stringify(stored).length,
  };
}

// A runner with one action, `act`, that returns or throws what `work` does.
function made({ work = async () => ({ done: true }), storage = fakeStorage(), isTakenOver = () => false, isConnected = true } = {}) {
  const sent = [];
  const results = [];
  const connection = {
    on: () => {}, onActive: () => {}, send: (message) => sent.push(message),
    request: async (message) => {
      if (!state.isConnected) throw new Error("not connected");
      results.push(message);
      return { ok: true };
    },
  };
  const state = { isConnected };
  const ui = { actionStarted: () => {}, actionEnded: () => {}, isTakenOver, withoutOverlay: (_, call) => call() };
  const calls = [];
  const actions = { act: async (context, params) => {
    calls.push(params);
    return work(context, params);
  } };
  const tasks = { ready: Promise.resolve(), rest: () => {} };
  const runner = new ActionRunner({ connection, records: new ActionRecords(storage), tasks, cdp: {}, pages: {}, ui, isOwn: () => false, actions });
  const receive = (id, { taskId = "t", ...more } = {}) =>
    runner.receive({ type: "browser_action", id, actionId: id, taskId, timeoutMs: 1000, action: { act: { tabId: 1 } }, ...more });
  return { runner, receive, sent, results, calls, storage, state };
}

test("an action is stored before it is performed, acknowledged, and its result is sent", async () => {
  const { receive, sent, results, storage } = made({ work: async () => ({ was: storage_().state }) });
  const storage_ = () => storage.stored["action:a"];
  await receive("a");
  assert.deepEqual(sent, [{ type: "ack", id: "a", ok: true }]);
  assert.deepEqual(results[0].result, { was: "started" });
  assert.equal(results[0].status, "success");
});

test("the same action is performed once, and its result is sent again", async () => {
  const { receive, results, calls } = made();
  await receive("a");
  await receive("a");
  assert.equal(calls.length, 1);
  assert.deepEqual(results[0], results[1]);
});

test("the same action while it runs is acknowledged only", async () => {
  let end;
  const { receive, sent, results } = made({ work: () => new Promise((resolve) => { end = resolve; }) });
  const first = receive("a");
  await new Promise((resolve) => setTimeout(resolve, 5));
  await receive("a");
  assert.deepEqual(sent.map(({ ok }) => ok), [true, true]);
  end({});
  await first;
  assert.equal(results.length, 1);
});

test("the same action that arrives while the first copy is looked up is acknowledged only", async () => {
  const { receive, sent, results, calls } = made();
  await Promise.all([receive("a"), receive("a")]);
  assert.deepEqual(sent.map(({ ok }) => ok), [true, true]);
  assert.deepEqual([calls.length, results.length], [1, 1]);
});

test("an action that a dead service worker began has an unknown effect and is not repeated", async () => {
  const storage = fakeStorage({ "action:a": { state: "started", taskId: "t", at: 1 } });
  const { receive, results, calls } = made({ storage });
  await receive("a");
  assert.deepEqual(calls, []);
  assert.equal(results[0].error.code, "CDP_UNAVAILABLE");
  assert.equal(results[0].error.details.effect, "unknown");
  assert.equal(results[0].error.retryable, false);
});

test("one action of a task runs at a time, and those of other tasks beside it", async () => {
  const ends = [];
  const { receive, sent } = made({ work: () => new Promise((resolve) => { ends.push(resolve); }) });
  const running = [receive("a"), receive("b", { taskId: "other" })];
  await new Promise((resolve) => setTimeout(resolve, 5));
  await receive("c");
  assert.deepEqual(sent.map(({ id, ok, error }) => [id, ok, error?.code]), [["a", true, undefined], ["b", true, undefined], ["c", false, "TASK_BUSY"]]);
  ends.forEach((end) => end({}));
  await Promise.all(running);
});

test("nothing begins while a person has the page", async () => {
  const { receive, sent, calls } = made({ isTakenOver: () => true });
  await receive("a");
  assert.equal(sent[0].error.code, "TASK_BUSY");
  assert.deepEqual(calls, []);
});

test("a result that the server did not get is sent after the next connection", async () => {
  const { runner, receive, results, state } = made({ isConnected: false });
  await receive("a");
  assert.deepEqual(results, []);
  state.isConnected = true;
  await runner.resend();
  await runner.resend();
  assert.deepEqual(results.map(({ actionId }) => actionId), ["a"]);
});

test("an action that takes too long fails, and may send no more input", async () => {
  let seen;
  const work = (context) => {
    seen = context;
    return new Promise(() => {});
  };
  const { receive, results } = made({ work });
  await receive("a", { timeoutMs: 150 });
  assert.deepEqual([results[0].error.code, results[0].error.details.effect], ["NAVIGATION_TIMEOUT", "unknown"]);
  assert.ok(seen.isOver);
});

test("what is no action is refused", async () => {
  const { receive, sent } = made();
  for (const more of [{ action: {} }, { action: { fly: {} } }, { action: { act: 1 } }, { actionId: "" }, { action: { act: {}, more: {} } }]) {
    await receive("a", more);
  }
  assert.deepEqual(sent.map(({ error }) => error.code), sent.map(() => "BAD_REQUEST"));
  assert.equal(sent.length, 5);
});

test("failures keep their code, and unknown errors are the extension's own", () => {
  assert.deepEqual(failureOf(cdpUnavailable("x", { effect: "none" })).asError(), { code: "CDP_UNAVAILABLE", message: "x", retryable: true, details: { effect: "none" } });
  assert.equal(failureOf(new TimedOut()).code, "NAVIGATION_TIMEOUT");
  const { error } = console;
  console.error = () => {};
  assert.equal(failureOf(new TypeError("bug")).code, "EXECUTION_ERROR");
  console.error = error;
});

test("old results that the server has are forgotten", async () => {
  const { receive, storage } = made();
  for (let at = 0; at < 70; at += 1) await receive(`a${at}`);
  assert.ok(Object.keys(storage.stored).length <= 62);
});
