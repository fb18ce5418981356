import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.chrome = { webNavigation: {}, tabs: {}, windows: {} };
const { ActionContext } = await import("../../../../runners/paired_browser/extension/actions/context.js");
const { pressKeys } = await import("../../../../runners/paired_browser/extension/input/gestures.js");
const { referenceOf } = await import("../../../../runners/paired_browser/extension/input/locator.js");
const { withInputStrategy } = await import("../../../../runners/paired_browser/extension/input/strategy.js");

const SHOP = "https://shop.example";
const FIELD = referenceOf({ xpath: "//input" });
const WORK = {
  click: (interactor) => interactor.click(FIELD),
  fill: (interactor) => interactor.fill(FIELD, "Ada"),
  point: (interactor) => interactor.clickPoint(1, 1),
  keys: (interactor) => pressKeys(interactor, null, "a", 1),
};

// Do the work in a tab that shows `url`; returns the failure and what the page was asked and sent.
async function performed(work, url, expectedOrigin) {
  const seen = [];
  const tab = {
    id: 1, url: async () => url, documents: 1, isLeaving: false, lost: new Promise(() => {}), dialogs: { answerNext: () => {} }, windowsKept: 0, windowsOpened: 0, pictureScale: 1,
  };
  const answers = {
    locate: { outcome: "ready", x: 1, y: 1, url, way: "text", match: { label: "Name" } }, clickOutcome: { outcome: "hit" },
    focusForKeys: { focus: "page", url }, shownValue: { value: "Ada" }, keysReady: { isReady: true },
    pressReady: { isReady: true }, pointReady: { isReady: true }, pressOutcome: { outcome: "hit" },
  };
  const pages = { run: async (_, command) => {
    if (command !== "locate") seen.push(command);
    return answers[command] ?? {};
  } };
  const isInput = ([method, { type }]) => method.startsWith("Input.dispatch") && type !== "mouseMoved";
  const sendInput = async (_, messages) => seen.push(...messages.filter(isInput).map(([method]) => method));
  const cdp = { attach: async () => {}, forget: () => {}, send: async () => {}, sendInput };
  const context = new ActionContext({ cdp, pages, isOwn: () => false, withholdFrames: async () => {}, requireWatch: async () => {} }, { taskId: "t", expectedOrigin }, performance.now() + 3000);
  context.tab = tab;
  const failure = await withInputStrategy(context, work, { byCdp: true, locateMs: 100 }).then(() => null, (error) => error);
  return { failure, seen };
}

for (const [name, work] of Object.entries(WORK)) {
  test(`no input (${name}) reaches a page of another origin than the one that was allowed`, async () => {
    const { failure, seen } = await performed(work, "https://bank.example/", SHOP);
    assert.deepEqual([failure?.code, failure?.details.effect, seen], ["ELEMENT_NOT_FOUND", "none", []]);
  });

  test(`input (${name}) reaches a page of the allowed origin, and any page without one`, async () => {
    for (const expected of [SHOP, ""]) {
      const { failure, seen } = await performed(work, `${SHOP}/cart`, expected);
      assert.equal(failure, null);
      assert.ok(seen.some((one) => one.startsWith("Input.dispatch")), seen.join());
    }
  });
}

test("an action names the origins of all pages on which it worked, and of that which the tab shows then", async () => {
  const context = new ActionContext({ isOwn: () => false }, { taskId: "t" }, performance.now() + 3000);
  for (const url of ["http://192.168.0.1/admin?x", "about:blank", `${SHOP}/a`, `${SHOP}/b`]) context.checkAddress(url);
  context.tab = { url: async () => "https://bank.example/" };
  assert.deepEqual(await context.pageOrigins(), ["http://192.168.0.1", "about:", SHOP, "https://bank.example"]);
});
