import assert from "node:assert/strict";
import { test } from "node:test";

const shown = {};
const chromeAction = Object.fromEntries(["BadgeText", "BadgeBackgroundColor", "BadgeTextColor", "Title"].map((name) =>
  [`set${name}`, (values) => Object.assign(shown, values)]));
globalThis.chrome = { action: chromeAction, i18n: { getMessage: (name) => name } };
const { PersonInput } = await import("../../../../runners/paired_browser/extension/takeover/person_input.js");
const { addPort } = await import("../../../../runners/paired_browser/extension/takeover/frame_ports.js");

const [TASK, TAB] = ["task_1", 7];

// The service worker's side of a task that is worked on, and the connected frame of its tab.
function worked({ frameId = 0, isTaken = false } = {}) {
  const takeovers = [];
  const control = {
    loaded: Promise.resolve(), all: new Map([[TASK, { title: "T", isTaken, waitsFor: null }]]), isShown: () => true, isWatched: () => true,
    takeOver: async (...taken) => takeovers.push(taken),
  };
  const closing = [];
  const port = { sender: { tab: { id: TAB }, frameId }, postMessage: () => {}, onDisconnect: { addListener: (listener) => closing.push(listener) } };
  const ui = new PersonInput({ connection: {}, tasks: { ready: Promise.resolve(), taskOf: () => TASK }, control });
  ui.connectionStatus = { isPaired: true, isConnected: true };
  addPort(port);
  const lose = async (isKnown) => {
    ui.receive(port, { type: "overlayLost", isKnown });
    await new Promise(setImmediate);
  };
  return { ui, lose, takeovers, close: () => closing.forEach((listener) => listener()) };
}

test("a page that removes the overlay too often is taken over, and the list says why", async () => {
  const { ui, lose, takeovers, close } = worked();
  await lose(false);
  assert.deepEqual(takeovers, [[TASK, "overlay_removed"]]);
  assert.deepEqual([ui.list()[0].isOverlayLost, shown.title], [true, "badgeLost"]);
  close();
});

test("a person who let the task go on is not interrupted again, and still sees that the overlay is missing", async () => {
  const { ui, lose, takeovers, close } = worked();
  await lose(true);
  assert.deepEqual([takeovers, ui.list()[0].isOverlayLost], [[], true]);
  close();
  assert.deepEqual([ui.list()[0].isOverlayLost, shown.title], [false, "badgeWorking"]); // another document
});

test("a page that a person has is shown as paused", async () => {
  const { lose, close } = worked({ isTaken: true });
  await lose(true);
  assert.deepEqual([shown.title, shown.text], ["badgeLostTaken", "II"]);
  close();
});

test("a frame inside the page has no overlay to lose", async () => {
  const { lose, takeovers, close } = worked({ frameId: 3 });
  await lose(false);
  assert.deepEqual(takeovers, []);
  close();
});
