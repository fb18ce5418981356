import assert from "node:assert/strict";
import { test } from "node:test";

const { addPort, nextPress, receivePress } = await import("../../../../runners/paired_browser/extension/takeover/frame_ports.js");

// A connection of the top frame of a tab; `end` is what Chrome calls when its document is gone.
function connected(tabId) {
  const port = { sender: { tab: { id: tabId }, frameId: 0 }, postMessage: () => {}, onDisconnect: { addListener: (listener) => (port.end = listener) } };
  addPort(port);
  return port;
}

test("a press that its document reported before it was gone is known, however late that is", async () => {
  const [port, report] = [connected(1), nextPress(1)];
  setTimeout(() => receivePress(port, { isHit: true }), 400);
  setTimeout(() => port.end(), 410);
  assert.equal(await report, true);
});

test("a document that is gone without a report has received no press, nor has a tab without connection", async () => {
  const [port, report] = [connected(2), nextPress(2)];
  port.end();
  receivePress(port, { isHit: true });
  assert.deepEqual(await Promise.all([report, nextPress(2)]), [false, false]);
});
