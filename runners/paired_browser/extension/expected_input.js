// The input events that the extension itself sends through the debugger. Pages receive them as trusted events, like a
// person's. So each event is announced before it is sent, and each trusted event that a page reports is looked up here:
// one that was announced is consumed, any other is a person's.
//
// What no frame reported is withdrawn when the command has ended and every frame of the tab has sent what it received
// until then. No event is attributed by the time at which it arrives.
import { askFrames } from "./takeover/frame_ports.js";

const NEARBY = 2; // CSS pixels: coordinates of zoomed pages are rounded
const BUTTONS = { none: -1, left: 0, middle: 1, right: 2, back: 3, forward: 4 };

const pending = new Map(); // tabId → the announced events that were not reported, oldest first

// Announce what the page will receive of a command of the debugger. Returns what `settle` takes.
export function announce(tabId, method, params = {}) {
  const events = eventsOf(method, params);
  if (events.length) pending.set(tabId, [...(pending.get(tabId) ?? []), ...events]);
  return { tabId, events };
}

// Withdraw the announced events that no frame has reported. Call it when the command has ended, also when it failed.
export async function settle({ tabId, events }, ask = askFrames) {
  if (!events.some((event) => pending.get(tabId)?.includes(event))) return;
  await ask(tabId, { type: "flush" });
  withdraw(tabId, events);
}

// Forget what was announced for a tab that was closed.
export function forget(tabId) {
  pending.delete(tabId);
}

// Return whether a reported event is one of those announced; then it is consumed.
export function consume(tabId, reported) {
  const event = pending.get(tabId)?.find((one) => isSame(one, reported));
  if (event) withdraw(tabId, [event]);
  return Boolean(event);
}

function withdraw(tabId, events) {
  const left = (pending.get(tabId) ?? []).filter((event) => !events.includes(event));
  if (left.length) pending.set(tabId, left);
  else pending.delete(tabId);
}

// The reported kinds of events that a command causes. Releases, drags and inserted texts are never reported.
function eventsOf(method, params) {
  const { type, x, y } = params;
  if (method === "Input.dispatchMouseEvent") {
    if (type === "mouseMoved") return [{ kind: "move", x, y }];
    if (type === "mousePressed") return [{ kind: "press", x, y, button: BUTTONS[params.button ?? "none"] }];
    if (type === "mouseWheel") return [{ kind: "wheel", x, y }];
  } else if (method === "Input.dispatchKeyEvent" && (type === "keyDown" || type === "rawKeyDown")) {
    return [{ kind: "key", key: params.key ?? params.text, code: params.code }];
  } else if (method === "Input.dispatchTouchEvent" && type === "touchStart") {
    return params.touchPoints.map((point) => ({ kind: "press", x: point.x, y: point.y, button: 0 }));
  }
  return [];
}

// A frame of another site does not know where it is in the tab, and reports no coordinates. A frame of a page that a
// person has taken over reports no keys.
function isSame(announced, reported) {
  if (announced.kind !== reported.kind) return false;
  if (announced.kind === "key") return reported.key === undefined || isSameKey(announced, reported);
  if (announced.kind === "press" && announced.button !== reported.button) return false;
  return reported.x === undefined || isNearby(announced, reported);
}

const isSameKey = (announced, reported) =>
  announced.key === reported.key || (Boolean(announced.code) && announced.code === reported.code);

const isNearby = (announced, reported) =>
  Math.abs(reported.x - announced.x) <= NEARBY && Math.abs(reported.y - announced.y) <= NEARBY;
