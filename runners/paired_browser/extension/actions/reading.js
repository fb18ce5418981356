// The actions that read the page: browser_observe, browser_dom_index, browser_xpath_scan, browser_find_text,
// browser_wait_for_text and browser_wait_for_loaded.
import { now } from "../clock.js";
import { textNotShown } from "../failures.js";
import { runInAllRoots } from "../reading/roots.js";
import { ERROR_PAGE, waitForDocument, waitForNavigation } from "../tab/navigation.js";
import { resultOf } from "./context.js";

const CLICK_ATTRIBUTE = "data-mimo_click_id";
const [PARSE_MS, IDLE_MS] = [3000, 2000]; // how long a page that is still loading or changing is waited for
const ANSWER_MS = 1000; // of the action's time, for the page's answer after the waiting
const NOT_OPENED = "The requested page could not be opened; the browser shows an error page instead.";

// What the page shows, as text for a model, and what it did by itself since the last observation.
export async function observe(context, { tabId, from = null, full = false, boxes = false }) {
  const tab = await context.useTab(tabId, { settled: true });
  const options = {
    attribute: CLICK_ATTRIBUTE, start: from, full, withBoxes: boxes, settle: { parseMs: PARSE_MS, idleMs: IDLE_MS },
  };
  const page = await context.withoutOverlay(tabId, () => runInAllRoots(context, "observe", () => options));
  context.checkAddress(page.url);
  const events = from === null ? tab.events.take() : {};
  return resultOf({
    url: page.url, title: page.title, status: page.status, viewport: page.viewport, scroll: page.scroll, text: page.text,
    elements: page.elements, cut: page.cut ?? undefined, ...events,
  });
}

const index = (mode) => async (context, { tabId, scope = "document", assignAttr = CLICK_ATTRIBUTE }) => {
  const tab = await context.useTab(tabId, { settled: true });
  const args = { mode, scope, attribute: assignAttr };
  const { elements, omitted } = await context.withoutOverlay(tabId, () => runInAllRoots(context, "index", () => args));
  context.checkAddress(await tab.url());
  return resultOf({ elements, warnings: omitted ? [`${omitted} more elements, further down, were omitted.`] : [] });
};
export const domIndex = index("mark");
export const xpathScan = index("scan");

export async function findText(context, { tabId, text, scroll = false }) {
  const tab = await context.useTab(tabId, { settled: true });
  const args = { text, scroll, attribute: CLICK_ATTRIBUTE };
  const { total, matches } = await context.withoutOverlay(tabId, () => runInAllRoots(context, "findText", () => args));
  context.checkAddress(await tab.url());
  return { total, matches };
}

// Wait until a text is shown on the page or a page to which it navigates; with `gone`, until it is not.
export async function waitForText(context, { tabId, text, gone = false, timeoutMs = 10_000 }) {
  const tab = await context.useTab(tabId);
  const until = now() + Math.min(timeoutMs, Math.max(100, context.end - ANSWER_MS - now()));
  await waitForNavigation(tab, until);
  const argsOf = () => ({ text, gone, timeoutMs: Math.max(0, Math.round(until - now())) });
  const { isMet } = await runInAllRoots(context, "waitForText", argsOf);
  const url = await tab.url();
  context.checkAddress(url);
  if (!isMet) {
    throw textNotShown(`The text “${text.slice(0, 100)}” is ${gone ? "still on" : "not on"} the page after the time to wait.`,
      { reason: "text", url });
  }
  return resultOf({ found: !gone, gone: gone || undefined, warnings: tab.takeNotices() });
}

// Wait until the page has loaded, with its images and styles, also one to which the last input navigates.
export async function waitForLoaded(context, { tabId, timeoutMs = 20_000 }) {
  const tab = await context.useTab(tabId);
  const until = Math.min(now() + timeoutMs, context.end);
  await waitForNavigation(tab, until);
  await waitForDocument(context, true, until);
  const warnings = await context.notices();
  if (ERROR_PAGE.test(await tab.url()) || tab.isErrorPage) warnings.push(NOT_OPENED);
  return resultOf({ status: "complete", warnings });
}
