import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.chrome = { scripting: {}, runtime: { onMessage: { addListener: () => {} } } };
const { Pages } = await import("../../../../runners/paired_browser/extension/page.js");

function listening() {
  let receive;
  new Pages({ cdp: {}, token: "t", runtime: { onMessage: { addListener: (listener) => (receive = listener) } } });
  return (message) => new Promise((resolve) => assert.equal(receive(message, {}, resolve), true));
}

test("the pause of a page script is answered after its time, and at most after half a second", async () => {
  const receive = listening();
  for (const [ms, least, most] of [[60, 50, 400], [60_000, 450, 900], ["x", 0, 300]]) {
    const began = performance.now();
    await receive({ type: "pageTimer", ms });
    const took = performance.now() - began;
    assert.ok(took >= least && took < most, `${ms}: ${took}`);
  }
});
