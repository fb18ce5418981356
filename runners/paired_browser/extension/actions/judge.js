// Judge which element an action uses, before the server decides on it: its name in the page and the facts about it. Nothing is
// done to the page.
import { now } from "../clock.js";
import { ContextLost, navigationTimeout } from "../failures.js";
import { notFound } from "../input/locator.js";

const ANSWER_MS = 3000; // for the page's answer, beside the time in which it may search
const MAX_DOCUMENTS = 8;

export async function judge(context, { tabId, locateMs, point = null, ...params }) {
  const tab = await context.useTab(tabId);
  await context.requireWatch(tabId);
  const request = {
    locator: null, to: null, isSubmit: false, ...params, timeoutMs: locateMs,
    point: point && { x: point.x / tab.pictureScale, y: point.y / tab.pictureScale },
  };
  for (let visit = 0; visit < MAX_DOCUMENTS; visit += 1) {
    try {
      const answer = await context.pages.run(tab, "judge", request, Math.min(context.end - now(), locateMs + ANSWER_MS));
      if (answer.outcome !== "judged") throw withoutEffect(notFound(answer, params.locator, params.purpose, await tab.url()));
      return answer;
    } catch (error) {
      if (!(error instanceof ContextLost)) throw error;
    }
  }
  throw navigationTimeout("The page keeps navigating to other documents.", { url: await tab.url(), effect: "none" });
}

function withoutEffect(failure) {
  failure.details.effect ??= "none";
  return failure;
}
