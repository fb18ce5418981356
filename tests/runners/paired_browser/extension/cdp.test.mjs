import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.chrome = {};
const { Debugger } = await import("../../../../runners/paired_browser/extension/cdp.js");
const { bursts, CdpInput } = await import("../../../../runners/paired_browser/extension/input/cdp_input.js");
const { keyOf } = await import("../../../../runners/paired_browser/extension/input/keys.js");
const { NotDispatched } = await import("../../../../runners/paired_browser/extension/failures.js");

// A debugger whose calls are recorded; `attach` and `sendCommand` may be replaced.
function made(replaced = {}) {
  const calls = [];
  const listeners = {};
  const api = {
    attach: async () => calls.push("attach"), detach: async () => calls.push("detach"),
    sendCommand: async (_, method, params) => calls.push([method, params?.type ?? ""].join(" ").trim()),
    onEvent: { addListener: (call) => { listeners.event = call; } }, onDetach: { addListener: (call) => { listeners.detach = call; } },
    ...replaced,
  };
  const input = {
    announce: (tabId, method, params) => {
      calls.push(`announce ${params.type ?? method}`);
      return {};
    },
    settle: () => calls.push("settle"),
  };
  return { cdp: new Debugger({ api, input }), calls, listeners, api };
}

const tab = { id: 1, lost: new Promise(() => {}), documents: 1, isLeaving: false };

// A press that the page confirms, and keys that it may get.
const press = (x, y, { isReceived = true } = {}) => ({ x, y, isCurrent: () => true, isReady: async () => true, isReceived: async () => isReceived });
const keys = { isCurrent: () => true, requireFocus: async () => {} };

test("a tab is attached once", async () => {
  const { cdp, calls } = made();
  await Promise.all([cdp.attach(1), cdp.attach(1)]);
  assert.deepEqual(calls, ["attach"]);
});

test("what Chrome forbids and what it cannot are told apart", async () => {
  const code = async (message) => {
    const { cdp } = made({ attach: async () => { throw new Error(message); } });
    return cdp.attach(1).catch((error) => error.code);
  };
  assert.equal(await code("Cannot access a chrome:// URL"), "CDP_PERMISSION_DENIED");
  assert.equal(await code("Target crashed"), "CDP_UNAVAILABLE");
});

test("the session of an earlier service worker is begun anew", async () => {
  let attempts = 0;
  const attach = async () => {
    attempts += 1;
    if (attempts === 1) throw new Error("Another debugger is already attached to the tab with id: 1.");
  };
  const { cdp, calls } = made({ attach });
  await cdp.attach(1);
  assert.deepEqual([attempts, calls], [2, ["detach"]]);
});

test("a session that the browser ended is reported, and attached again by the next use", async () => {
  const { cdp, calls, listeners } = made();
  const reasons = [];
  cdp.onDetach((tabId, reason) => reasons.push([tabId, reason]));
  await cdp.attach(1);
  listeners.detach({ tabId: 1 }, "canceled_by_user");
  await cdp.attach(1);
  assert.deepEqual([reasons, calls], [[[1, "canceled_by_user"]], ["attach", "attach"]]);
});

test("each input event is announced before it is sent", async () => {
  const { cdp, calls } = made();
  await new CdpInput(tab, cdp).click(press(5, 6));
  const sent = calls.filter((call) => !/settle|evaluate/.test(call));
  assert.deepEqual(sent, [
    "announce mouseMoved", "Input.dispatchMouseEvent mouseMoved",
    "announce mousePressed", "Input.dispatchMouseEvent mousePressed", "announce mouseReleased", "Input.dispatchMouseEvent mouseReleased",
  ]);
  assert.equal(calls.filter((call) => call === "settle").length, 3);
});

test("a press that the element has not received is released outside of the page", async () => {
  const points = [];
  const { cdp } = made({ sendCommand: async (_, method, params) => params?.type && points.push([params.type, params.x, params.y]) });
  await assert.rejects(new CdpInput(tab, cdp).click(press(5, 6, { isReceived: false })), { hasPressed: true });
  assert.deepEqual(points, [["mouseMoved", 5, 6], ["mousePressed", 5, 6], ["mouseReleased", -1, -1]]);
});

test("a button that is pressed when the action ends is released outside of the page", async () => {
  const points = [];
  const { cdp } = made({ sendCommand: async (_, method, params) => params?.type && points.push([params.type, params.x]) });
  let isOver = false;
  const ending = { ...press(5, 6), isReceived: async () => (isOver = true) };
  await assert.rejects(new CdpInput(tab, cdp, () => isOver).click(ending), { code: "CDP_UNAVAILABLE" });
  assert.deepEqual(points.at(-1), ["mouseReleased", -1]);
});

test("input that was not dispatched may be replaced; input that may have been is not", async () => {
  const failing = (fails) => made({ sendCommand: async (_, method, params) => {
    if (fails(method, params)) throw new Error("Debugger is not attached to the tab with id: 1.");
  } }).cdp;
  await assert.rejects(new CdpInput(tab, failing(() => true)).click(press(1, 1)), NotDispatched);
  const lost = new CdpInput(tab, failing((_, params) => params?.type === "mouseReleased")).click(press(1, 1));
  await assert.rejects(lost, { code: "CDP_UNAVAILABLE", retryable: false, details: { effect: "unknown" } });
});

test("an action that is over sends no more input", async () => {
  const { cdp, calls } = made();
  await assert.rejects(new CdpInput(tab, cdp, () => true).pressKey("a", keys), { code: "CDP_UNAVAILABLE" });
  assert.ok(!calls.some((call) => call.startsWith("Input.dispatchKeyEvent")));
});

test("a text is sent in groups of a few keys; a space begins one, other characters are committed", () => {
  const sizes = bursts("abcdefgh i你好").map((messages) => messages.map(([, { text, type }]) => (type === "keyUp" ? "" : text)).join(""));
  assert.deepEqual(sizes, ["a", "bcdefg", "h", " i你好"]);
});

test("keys have the names of the protocol", () => {
  assert.deepEqual(keyOf("Shift+Tab"), { key: "Tab", code: "Tab", windowsVirtualKeyCode: 9, modifiers: 8 });
  assert.equal(keyOf("Control+a").text, undefined);
  assert.deepEqual([keyOf("A").modifiers, keyOf("Enter").text], [8, "\r"]);
});
