// Read the text of a page as the worker's browser does: settle, extract, one markdown text.
import { now } from "../clock.js";
import { ActionFailed, ContextLost, navigationFailed, navigationTimeout, TimedOut } from "../failures.js";
import { unfinishedPage } from "../tab/address_failures.js";
import { waitForNavigation } from "../tab/navigation.js";

const PARSE_MS = 30_000;
const IDLE_MS = 3000;
const ANSWER_MS = 6000; // for reading the document itself, on a machine under load
const MAX_DOCUMENTS = 8;

const UNSETTLED = {
  loading: "The page was still loading after 3 s and was read as it was.",
  network: "The page was still requesting data after 3 s and was read as it was.",
  changing: "The page was still changing after 3 s and was read as it was.",
  hanging: "The page's script hung; it was terminated and the page was read as it was.",
  moving: "The page kept navigating to other documents and was read as it was.",
};

// Returns the page of generated/read.js with `warnings`; `end` is a time of performance.now().
export async function readPage(context, maxContentLength, end) {
  const { tab } = context;
  const parseBy = Math.min(now() + PARSE_MS, end);
  await waitForNavigation(tab, parseBy);
  const answer = await readFinalDocument(context, maxContentLength, parseBy, end);
  const url = await tab.url();
  if (answer.outcome === "unparsed") throw unfinishedPage(url);
  if (answer.outcome === "unreadable") {
    const { contentType } = answer;
    throw new ActionFailed("STEP_EXECUTION_FAILED", `The document is ${contentType}, which has no text to read.`,
      { reason: "unreadable_document", contentType, url });
  }
  const status = answer.page.httpStatus ?? 200;
  const httpError = status >= 400 ? [`The server answered with HTTP status ${status}.`] : [];
  return { ...answer.page, warnings: [...httpError, ...(UNSETTLED[answer.settled] ? [UNSETTLED[answer.settled]] : [])] };
}

// Read the document at which the page's own navigations end.
async function readFinalDocument(context, maxContentLength, parseBy, end) {
  const { tab, pages } = context;
  for (let visit = 0; visit < MAX_DOCUMENTS; visit += 1) {
    const isPatient = visit < MAX_DOCUMENTS / 2;
    const idleMs = isPatient ? Math.max(0, Math.min(IDLE_MS, end - now())) : 0;
    const options = {
      settle: { parseMs: Math.max(0, parseBy - now()), idleMs, stays: visit === 0 && !tab.isLeaving },
      waitFor: null,
      extract: { content: true, pageInfo: false, maxElements: 0, maxContentLength },
    };
    try {
      const answer = JSON.parse(await pages.call(tab, "continuityRead", options, () => end - now()));
      return isPatient ? answer : { ...answer, settled: "moving" };
    } catch (error) {
      if (error instanceof TimedOut) return readHanging(context, options);
      if (!(error instanceof ContextLost)) throw error;
    }
  }
  throw navigationFailed("The page keeps navigating to other addresses.", { reason: "keeps_navigating", url: await tab.url() });
}

// Terminate the script of a page that did not answer, and read the page without waiting.
async function readHanging({ tab, pages, cdp }, options) {
  const hangs = () => navigationTimeout("The page's script hangs, and the page cannot be read.");
  if (!cdp.isAttached(tab.id)) throw hangs();
  await cdp.send(tab.id, "Runtime.terminateExecution").catch(() => {});
  const limit = now() + ANSWER_MS / 2;
  try {
    const immediate = { ...options, settle: { parseMs: 0, idleMs: 0 } };
    return { ...JSON.parse(await pages.call(tab, "continuityRead", immediate, () => limit - now())), settled: "hanging" };
  } catch {
    throw hangs();
  }
}

// Sections as one markdown text, each under its heading.
export function markdownOf(sections) {
  const blocks = [];
  for (const { heading, level, text } of sections) {
    if (heading) blocks.push(`${"#".repeat(Math.max(1, level))} ${heading}`);
    if (text) blocks.push(text);
  }
  return blocks.join("\n\n");
}
