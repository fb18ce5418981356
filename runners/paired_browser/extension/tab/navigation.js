// Open a URL in a task's tab, wait for its document, go back.
import { now, sleep, waitUntil, within } from "../clock.js";
import { ActionFailed, ContextLost, invalidParameter, navigationFailed, navigationTimeout, TimedOut } from "../failures.js";
import { navigationFailure, noAnswer, unfinishedPage } from "./address_failures.js";

const GRACE_MS = 100;
const POLL_MS = 30;
const COMMIT_MS = 2000;
export const ERROR_PAGE = /^chrome-error:/;
const EMPTY_PAGE = "about:blank";
const SHOWN = ["Page.frameNavigated", "Page.navigatedWithinDocument"];
const ENDED = "Page.frameStoppedLoading";
const HISTORY = new Set([...SHOWN, ENDED]);

// Wait for the navigation that the last input started, if any, until `end`.
export async function waitForNavigation(tab, end) {
  if (tab.mayNavigate()) await waitForNextDocument(tab, end);
}

export async function waitForNextDocument(tab, end, graceMs = GRACE_MS) {
  const [{ documents }, began] = [tab, now()];
  await sleep(graceMs);
  const hasCome = await waitUntil(() => tab.documents !== documents || !tab.isLeaving, end);
  if (!hasCome) throw noAnswer(await tab.url(), now() - began, "The server of the next page");
}

// Open a URL and wait until its document is parsed; returns its title and warnings.
export async function openAddress(context, url, end) {
  const { tab, cdp } = context;
  const ms = Math.max(100, end - now());
  Object.assign(tab, { leavingTo: "", isDropped: false });
  const loading = cdp.isAttached(tab.id) ? navigateByDebugger(context, url, ms) : navigateByTab(context, url, ms);
  try {
    await Promise.race([within(ms, loading), tab.lost]);
  } catch (error) {
    if (error instanceof TimedOut) throw noAnswer(url, ms);
    if (error.details?.netError === "ERR_HTTP_RESPONSE_CODE_FAILURE") return { title: "", warnings: ["The server answered with an HTTP error status and an empty page."] };
    throw error;
  }
  return arrive(context, end);
}

async function navigateByDebugger({ tab, cdp }, url, ms) {
  const end = nextNavigation(tab.id, await shownDocument(tab.id), ms);
  let answer;
  try {
    answer = await cdp.send(tab.id, "Page.navigate", { url });
  } catch (error) {
    if (!tab.isDropped) throw error; // Chrome lets no debugger see this page
    await end;
    return;
  }
  if (answer.isDownload) {
    throw navigationFailed("The address returned a file to download instead of a page; nothing was stored.", { reason: "download", url });
  }
  if (answer.errorText) throw navigationFailure(answer.errorText, url);
  // The answer and the event of the new document arrive on different ways.
  if (answer.loaderId) await waitUntil(() => tab.loaderId === answer.loaderId, now() + Math.min(ms, COMMIT_MS), 2);
}

// Without the debugger, Chrome says only that a navigation has led to a document or has failed.
async function navigateByTab({ tab }, url, ms) {
  const end = nextNavigation(tab.id, await shownDocument(tab.id), ms);
  await chrome.tabs.update(tab.id, { url });
  const error = await end;
  if (error) throw navigationFailure(error, url);
}

// The id of the document that a tab shows now; undefined if Chrome does not say it.
async function shownDocument(tabId) {
  const frame = await chrome.webNavigation.getFrame({ tabId, frameId: 0 }).catch(() => null);
  return frame?.documentId;
}

// Resolves at the end of the next navigation of the tab: with "" if it leads to a document, else with the browser's error.
// What is about the document that is left, `left`, is not of this navigation: that its loading was aborted, or that the empty
// page of a new tab was shown.
function nextNavigation(tabId, left, ms) {
  const { onCommitted, onErrorOccurred } = chrome.webNavigation;
  return new Promise((resolve) => {
    const isOfLeft = ({ documentId, url }) => url === EMPTY_PAGE || (documentId !== undefined && documentId === left);
    const listen = (details) => details.tabId === tabId && details.frameId === 0 && !isOfLeft(details) && end(details.error ?? "");
    const end = (error) => {
      onCommitted.removeListener(listen);
      onErrorOccurred.removeListener(listen);
      resolve(error);
    };
    onCommitted.addListener(listen);
    onErrorOccurred.addListener(listen);
    setTimeout(() => end(""), ms);
  });
}

// Wait until the document to which the tab navigated is parsed; returns its title and warnings.
export async function arrive(context, end) {
  let document;
  try {
    document = await waitForDocument(context, false, end);
  } catch (error) {
    if (error instanceof ActionFailed) await stopLoading(context);
    throw error;
  }
  const status = document.status ?? 200;
  const warnings = status >= 400 ? [`The server answered with HTTP status ${status}.`] : [];
  return { title: document.title.split(/\s+/).filter(Boolean).join(" "), warnings };
}

// Wait until the tab's document is parsed, or `wholly` loaded; returns {title, status}.
export async function waitForDocument({ tab, pages }, wholly, end) {
  for (;;) {
    try {
      return JSON.parse(await pages.call(tab, "continuityDocumentReady", { wholly }, () => end - now()));
    } catch (error) {
      if (error instanceof TimedOut) throw unfinishedPage(await tab.url());
      if (!(error instanceof ContextLost)) throw error;
      await sleep(10);
    }
  }
}

async function stopLoading({ tab, cdp }) {
  if (cdp.isAttached(tab.id)) await within(1000, cdp.send(tab.id, "Page.stopLoading")).catch(() => {});
}

// Go back to the page, or the page's state, that the tab showed before; returns its title and warnings.
export async function goBack(context, end) {
  const { tab, cdp } = context;
  const { currentIndex, entries } = await history(context, end);
  const earlier = currentIndex > 0 ? entries[currentIndex - 1] : { url: "" };
  if (!/^https?:/.test(earlier.url)) throw invalidParameter("The tab showed no page before this one.", { effect: "none" });
  context.checkAddress(earlier.url);
  const details = { url: earlier.url, effect: "unknown" };
  const recorded = tab.recordEvents(HISTORY);
  try {
    const { documents } = tab;
    await within(end - now(), cdp.send(tab.id, "Page.navigateToHistoryEntry", { entryId: earlier.id }));
    while (!(await hasArrived(context, currentIndex, documents, recorded.seen, end))) await sleep(POLL_MS);
    const arrived = await arrive(context, end);
    if (ERROR_PAGE.test(await tab.url())) {
      throw navigationFailed("The earlier page could not be opened; the browser shows an error page instead.");
    }
    return arrived;
  } catch (error) {
    if (error instanceof TimedOut || error.code === "NAVIGATION_TIMEOUT") {
      await stopLoading(context);
      throw navigationTimeout("The earlier page did not load in time.", details);
    }
    if (error instanceof ActionFailed) error.details = { ...error.details, ...details };
    throw error;
  } finally {
    recorded.end();
    tab.lastInputAt = now();
  }
}

// Return whether the tab shows another history entry, of another document or of the same.
async function hasArrived(context, current, documents, seen, end) {
  const { tab } = context;
  if (tab.documents !== documents) return true;
  if (now() >= end) throw new TimedOut();
  if (tab.isLeaving || seen.size === 0) return false;
  const { currentIndex } = await history(context, end); // while a navigation is pending, its entry
  if (currentIndex === current && seen.has(ENDED)) throw navigationFailed("The server sent no page, but an empty response or a download.");
  return currentIndex !== current && SHOWN.some((name) => seen.has(name)) && !tab.isLeaving;
}

const history = ({ tab, cdp }, end) => within(end - now(), cdp.send(tab.id, "Page.getNavigationHistory"));
