// The actions that move in a page or its history: browser_scroll and browser_go_back.
import { now, within } from "../clock.js";
import { ContextLost, invalidParameter, navigationTimeout, TimedOut } from "../failures.js";
import { hasTarget, referenceOf, requireFound } from "../input/locator.js";
import { arrive, goBack as goBackByDebugger } from "../tab/navigation.js";
import { resultOf } from "./context.js";

const MAX_DOCUMENTS = 3;
const SETTLE_MS = 2500; // of the action's time, for the page's answer after the last movement
const STOPPED = {
  screens: (screens) => `The scrolling ended after ${screens} screens; there is more below.`,
  time: (screens) => `The scrolling ended after ${screens} screens, because its time was up; there may be more below.`,
};

export async function scroll(context, params) {
  const tab = await context.useTab(params.tabId, { settled: true });
  const { stopped = "", ...answer } = await context.withoutOverlay(tab.id, () => scrollPage(context, params));
  context.checkAddress(await tab.url());
  return resultOf({ ...answer, warnings: stopped ? [STOPPED[stopped](answer.screens)] : [] });
}

async function scrollPage(context, params) {
  const { tab, pages } = context;
  const target = hasTarget(params) ? referenceOf(params) : null;
  for (let visit = 0; visit < MAX_DOCUMENTS; visit += 1) {
    const ms = context.msLeft();
    const request = {
      locator: target, screens: params.screens ?? null, to: params.to ?? null, untilNothingNew: params.untilNothingNew ?? false,
      maxScreens: params.maxScreens ?? 20, timeoutMs: Math.round(Math.max(100, ms - SETTLE_MS)),
    };
    try {
      const answer = await pages.run(tab, "scroll", request, ms);
      requireFound(answer, target, await tab.url());
      return answer;
    } catch (error) {
      if (!(error instanceof ContextLost)) throw error;
    }
  }
  throw navigationTimeout("The page keeps navigating to other documents.", { url: await tab.url() });
}

// Go back to the page, or the page's state, that the tab showed before.
export async function goBack(context, { tabId }) {
  const tab = await context.useTab(tabId, { settled: true });
  const isAttached = context.cdp.isAttached(tabId);
  const { title, warnings } = isAttached ? await goBackByDebugger(context, context.end) : await goBackByTab(context);
  const url = await tab.url();
  context.checkAddress(url);
  return resultOf({ url, title: title || undefined, warnings: [...warnings, ...tab.takeNotices()] });
}

// Without the debugger, the history is not known, and a page that does not come is not either.
async function goBackByTab(context) {
  const { tab } = context;
  const before = await tab.url();
  try {
    await within(context.end - now(), chrome.tabs.goBack(tab.id));
  } catch (error) {
    if (error instanceof TimedOut) throw navigationTimeout("The earlier page did not load in time.", { url: before, effect: "unknown" });
    throw invalidParameter("The tab showed no page before this one.", { effect: "none" });
  }
  tab.lastInputAt = now();
  return arrive(context, context.end);
}
