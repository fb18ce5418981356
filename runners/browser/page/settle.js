// Wait until a page is ready to be read: document parsed, load event fired, no requests in flight, no changes.
const QUIET_MS = 34; // two frames
const LONGEST_CHANGE_MS = 1000; // changes are ignored after this, because some pages (a clock) never stop changing
const STABLE_MS = 500;
const EMPTY_QUIET_MS = 400;

// Not setTimeout, because a page that clears all timer ids would clear this one too. The browser extension has a timer of
// its own for tabs that are not shown, whose tasks run once a second.
const sleep = (ms) => globalThis.continuitySleep?.(ms) ?? scheduler.postTask(() => {}, { delay: ms });
const nextTask = () => scheduler.postTask(() => {}, { priority: "user-blocking" });
const now = () => performance.now();
const isTrueInPage = (question) => !dispatch(document, new Event(`__TOKEN__${question}`, { cancelable: true }));
const isBusy = () => isTrueInPage("busy") || refreshesSoon();

// A page that redirects immediately (<meta http-equiv=refresh content="0;url=…">) is not the page to read.
const refreshesSoon = () => {
  const rule = one(document, "meta[http-equiv=refresh i]");
  const [, delay, address] = (rule && attr(rule, "content")?.match(/^\s*([\d.]+)\s*[;,]\s*(?:url\s*=)?\s*(.+)$/i)) ?? [];
  return delay !== undefined && Number(delay) <= 1 && URL.parse(address.replace(/^['"]|['"]$/g, ""), location.href)?.href !== location.href;
};

const until = async (target, event, isDone, deadline) => {
  if (isDone()) return true;
  let onEvent;
  const signal = new Promise((resolve) => {
    onEvent = resolve;
    listen(target, event, resolve, { once: true });
  });
  await Promise.race([signal, sleep(Math.max(0, deadline - now()))]);
  unlisten(target, event, onEvent);
  return isDone();
};

const isParsed = () => readyState(document) !== "loading";
const isLoaded = () => readyState(document) === "complete";

// Return whether the page looks like a mount point that its script has not filled yet: scripts, but hardly any text.
const FILLED = 30;
const looksUnfilled = () => {
  const body = bodyOf(document);
  if (body === null || tagOf(body) !== "body" || one(document, "script") === null) return false;
  const first = one(body, "p,li,h1,h2,td");
  if (first && rawText(first).trim().length >= FILLED && visible(first)) return false;
  return lineOfText(body, 100).length < FILLED;
};

const lastArrival = () => {
  const entries = performance.getEntriesByType("resource");
  return entries.length ? entries[entries.length - 1].responseEnd : 0;
};

// Wait until nothing is in flight and nothing changed for `quietMs`; return "idle", or what still happened at the deadline.
const quiet = async (deadline, quietMs, isFilled) => {
  const began = now();
  let last = began;
  const watcher = new MutationObserver(() => {
    if (now() - began < LONGEST_CHANGE_MS) last = now();
  });
  watcher.observe(document, { childList: true, characterData: true, subtree: true });
  try {
    while (now() < deadline) {
      if (isBusy()) last = now();
      const needed = isFilled() ? quietMs : EMPTY_QUIET_MS;
      if (now() - Math.max(last, lastArrival()) >= needed) return "idle";
      await sleep(16);
    }
    return isBusy() ? "network" : "changing";
  } finally {
    watcher.disconnect();
  }
};

// Return "unparsed", "idle", or what the page still did when the time was up.
const settle = async ({ parseMs, idleMs, stays }) => {
  if (stays) isTrueInPage("stays"); // resets the page's pending navigation
  if (!(await until(document, "DOMContentLoaded", isParsed, now() + parseMs))) return "unparsed";
  const deadline = now() + idleMs;
  if (!(await until(window, "load", isLoaded, deadline))) return "loading";
  await nextTask(); // let the page's own load listeners run first
  const unfilled = looksUnfilled();
  if (!unfilled && !isTrueInPage("ever") && !isBusy()) return "idle";
  return quiet(deadline, QUIET_MS, unfilled ? () => !looksUnfilled() : () => true);
};

const CONDITIONS = {
  selector: (value) => findRoots(document).some(({ root }) => [...all(root, value)].some(visible)),
  urlContains: (value) => location.href.includes(value),
  textIncludes: (value) => (bodyOf(document)?.innerText ?? rawText(rootOf(document) ?? new Text(""))).includes(value),
};

// Wait until nothing is in flight and nothing changed for STABLE_MS. Elements whose text is replaced again and again, such
// as clocks, do not count. Return null, or what was changing when the time was up, latest first.
const REPLACED_TIMES = 3;
const REPLACED_MS = 1000;
const MAX_CHANGING = 3;
const untilStable = async (deadline) => {
  const [began, changes] = [now(), new Map()];
  let busyAt = began;
  const repeats = ({ times, firstAt, at, isReplaced }) => isReplaced && times >= REPLACED_TIMES && at - firstAt >= REPLACED_MS;
  const watcher = new MutationObserver((records) => {
    for (const element of new Set(records.map(({ target }) => (nodeKind(target) === TEXT ? parentElementOf(target) : target)))) {
      if (!element) continue;
      const [text, before] = [rawText(element) ?? "", changes.get(element)];
      const isReplaced = before === undefined || (before.isReplaced && !(before.text && text.startsWith(before.text)));
      changes.set(element, { text, isReplaced, times: (before?.times ?? 0) + 1, firstAt: before?.firstAt ?? now(), at: now() });
    }
  });
  watcher.observe(document, { childList: true, characterData: true, subtree: true });
  try {
    while (now() < deadline) {
      if (isBusy()) busyAt = now();
      const changedAt = [...changes.values()].reduce((last, change) => (repeats(change) ? last : Math.max(last, change.at)), began);
      if (now() - Math.max(changedAt, busyAt, lastArrival()) >= STABLE_MS) return null;
      await sleep(34);
    }
    const latest = [...changes].filter(([, { at }]) => now() - at < 2 * REPLACED_MS).sort(([, a], [, b]) => b.at - a.at);
    return latest.slice(0, MAX_CHANGING).map(([element]) => lineOfText(element, 80)).filter(Boolean);
  } finally {
    watcher.disconnect();
  }
};

// Wait for the caller's condition; return null, or, if its time is up, what was changing.
const waitFor = async ({ type, value, timeoutMs }) => {
  const deadline = now() + timeoutMs;
  if (type === "stable") return untilStable(deadline);
  while (!CONDITIONS[type](value)) {
    if (now() >= deadline) return [];
    await sleep(Math.min(50, Math.max(1, deadline - now())));
  }
  return null;
};
