// The tabs of a task that has ended.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Tasks } from "../../../../runners/paired_browser/extension/tasks.js";

const event = { addListener: () => {} };

// Tasks with one task in the tabs 1 and 2, of which the person looks at 2; `removed` collects the tabs that are closed.
function tasksWithTabs(t) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const removed = [];
  const tabs = {
    onRemoved: event,
    onReplaced: event,
    get: async (id) => ({ id, active: id === 2 }),
    remove: async (ids) => removed.push(...ids),
  };
  const navigation = { onCommitted: event, onCreatedNavigationTarget: event };
  const storage = { get: async () => ({}), set: async () => {} };
  const cdp = { onEvent: () => {}, onDetach: () => {}, detach: async () => {} };
  const tasks = new Tasks({ cdp, storage, tabs, groups: {}, navigation });
  return { tasks, removed, fill: () => Object.assign(tasks.records, { task_1: { tabs: [1, 2], closed: [] } }) };
}

test("task_stop closes the tabs of a task that has just ended, but not one that the person looks at", async (t) => {
  const { tasks, removed, fill } = tasksWithTabs(t);
  await tasks.ready;
  fill();
  await tasks.setStatus("task_1", "completed");
  assert.deepEqual(removed, []);
  await tasks.end("task_1", { close: true });
  assert.deepEqual(removed, [1]);
});

test("tabs that a person has taken over, or that were left some time ago, stay open", async (t) => {
  const { tasks, removed, fill } = tasksWithTabs(t);
  await tasks.ready;
  fill();
  await tasks.setStatus("task_1", "completed");
  t.mock.timers.tick(30_000);
  await tasks.end("task_1", { close: true });
  fill();
  await tasks.setStatus("task_1", "takeover");
  await tasks.setStatus("task_1", "completed");
  await tasks.end("task_1", { close: true });
  assert.deepEqual(removed, []);
});
