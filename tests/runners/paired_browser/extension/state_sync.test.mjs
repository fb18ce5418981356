import assert from "node:assert/strict";
import { test } from "node:test";

import { cleanAddress, StateSync } from "../../../../runners/paired_browser/extension/state_sync.js";

const TAB_EVENTS = ["onCreated", "onUpdated", "onRemoved", "onActivated", "onMoved", "onAttached", "onDetached", "onReplaced"];
const GROUP_EVENTS = ["onCreated", "onUpdated", "onRemoved"];

function made({ ack = { ok: true } } = {}) {
  const listeners = {};
  const events = (api, names) => Object.fromEntries(names.map((name) => [name, { addListener: (call) => { listeners[`${api}.${name}`] = call; } }]));
  const tab = { id: 7, windowId: 1, index: 0, groupId: -1, url: "http://u:p@a.example/x#y", title: "A", active: true, pinned: false, status: "complete" };
  const api = {
    tabs: { ...events("tabs", TAB_EVENTS), query: async () => [tab, { ...tab, id: 8, windowId: 2, incognito: true }] },
    tabGroups: { ...events("groups", GROUP_EVENTS), query: async () => [{ id: 3, windowId: 1, title: "G", color: "blue", collapsed: false }] },
    windows: { getAll: async () => [{ id: 1, type: "normal", focused: true, state: "normal" }, { id: 2, type: "normal", incognito: true }] },
  };
  const sent = [];
  let activate;
  const connection = {
    isActive: true,
    onActive: (call) => { activate = call; },
    request: async (message) => {
      sent.push(message);
      return typeof ack === "function" ? ack(message) : ack;
    },
  };
  const sync = new StateSync({ connection, api });
  return { sync, sent, listeners, tab, start: () => activate({ syncIntervalMs: 20_000 }) };
}

const soon = (ms = 5) => new Promise((resolve) => setTimeout(resolve, ms));

test("the whole state is sent after the activation, without private windows", async () => {
  const { sync, sent, start } = made();
  start();
  await soon();
  clearInterval(sync.timer);
  assert.equal(sent[0].type, "full_state_sync");
  assert.equal(sent[0].seq, 1);
  assert.deepEqual(sent[0].state.tabs, [{ tabId: 7, windowId: 1, index: 0, url: "http://a.example/x", title: "A", active: true, pinned: false, status: "complete" }]);
  assert.deepEqual(sent[0].state.windows, [{ windowId: 1, type: "normal", focused: true, state: "normal" }]);
  assert.deepEqual([sent[0].state.activeWindowId, sent[0].state.activeTabId], [1, 7]);
});

test("each kind of change is an event, with numbers without a gap", async () => {
  const { sent, listeners, tab } = made();
  listeners["tabs.onCreated"](tab);
  listeners["tabs.onRemoved"](7, { windowId: 1 });
  listeners["tabs.onActivated"]({ tabId: 7, windowId: 1 });
  listeners["tabs.onMoved"](7, { windowId: 1, toIndex: 2 });
  listeners["tabs.onAttached"](7, { newWindowId: 4, newPosition: 0 });
  listeners["tabs.onDetached"](7, { oldWindowId: 1 });
  listeners["tabs.onReplaced"](9, 7);
  for (const name of ["onCreated", "onUpdated", "onRemoved"]) listeners[`groups.${name}`]({ id: 3, windowId: 1, title: "G", color: "blue", collapsed: false });
  const kinds = sent.map(({ event }) => event.kind);
  assert.deepEqual(kinds, ["created", "removed", "activated", "moved", "attached", "detached", "replaced", "groupCreated", "groupUpdated", "groupRemoved"]);
  assert.deepEqual(sent.map(({ seq }) => seq), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

test("changes of one tab in a short time are one event, before later ones", async () => {
  const { sent, listeners, tab } = made();
  for (const title of ["B", "C"]) listeners["tabs.onUpdated"](7, { title }, { ...tab, title });
  listeners["tabs.onUpdated"](7, { audible: true }, tab);
  listeners["tabs.onRemoved"](7, { windowId: 1 });
  assert.deepEqual(sent.map(({ event }) => event.kind), ["updated", "removed"]);
  assert.equal(sent[0].event.tab.title, "C");
});

test("a server that missed something gets the whole state", async () => {
  const { sent, listeners } = made({ ack: ({ type }) => ({ ok: true, resync: type === "tab_event" }) });
  listeners["tabs.onActivated"]({ tabId: 7, windowId: 1 });
  await soon();
  assert.deepEqual(sent.map(({ type }) => type), ["tab_event", "full_state_sync"]);
});

test("a browser that changes too much sends its whole state instead", async () => {
  const { sent, listeners } = made();
  for (let at = 0; at < 150; at += 1) listeners["tabs.onActivated"]({ tabId: at, windowId: 1 });
  await soon(1100);
  assert.ok(sent.length <= 102);
  assert.equal(sent.at(-1).type, "full_state_sync");
});

test("addresses are sent without user info and fragment", () => {
  assert.equal(cleanAddress("https://u:p@a.example/b?c#d"), "https://a.example/b?c");
  assert.equal(cleanAddress("not an address"), undefined);
});
