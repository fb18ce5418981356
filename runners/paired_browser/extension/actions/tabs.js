// The actions on the task's tabs: task_start, task_stop, browser_list_tabs, browser_switch_tab, browser_close_tab and
// browser_debugger_attach.
import { invalidParameter, taskTabClosed } from "../failures.js";
import { openAddress } from "../tab/navigation.js";
import { resultOf } from "./context.js";

const EMPTY_PAGE = "about:blank";
const BROWSER_PAGE = "chrome://"; // whose address Chrome does not tell extensions
const URL_LIMIT = 2000;

function addressOf(url) {
  if (url === undefined || url === null) return null;
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (!parsed || !/^https?:$/.test(parsed.protocol)) {
    throw invalidParameter("url: give an http or https URL.", { url: String(url).slice(0, URL_LIMIT) });
  }
  return parsed.href;
}

// Open the task's own tab, without showing it, on `url` or an empty page, and wait until it is parsed.
export async function taskStart(context, { url: given, reuseExistingTab = false, groupTitle }) {
  const { tasks, taskId } = context;
  const url = addressOf(given);
  if (url) context.checkAddress(url);
  const earlier = reuseExistingTab ? tasks.current(taskId) : undefined;
  const tabId = earlier ?? await openTab(context);
  context.tab = tasks.tab(tabId);
  context.tab.dialogs.reset();
  await context.attach({ isLeft: url !== null });
  const title = groupTitle ?? context.taskTitle;
  if (earlier === undefined || groupTitle !== undefined) await tasks.group(taskId, tabId, title).catch(() => {});
  context.tab.takeNotices(); // those of the previous page
  const { title: pageTitle, warnings } = url ? await open(context, url) : { title: "", warnings: [] };
  const address = await context.tab.url();
  context.checkAddress(address);
  const { windowId, groupId } = await chrome.tabs.get(tabId);
  return resultOf({
    tabId, windowId, groupId: groupId >= 0 ? groupId : undefined, url: address || EMPTY_PAGE, title: pageTitle || undefined,
    warnings: [...warnings, ...await context.notices()],
  });
}

// Open a URL; the tab keeps its page if it is a download.
async function open(context, url) {
  try {
    return await openAddress(context, url, context.end);
  } catch (error) {
    if (error.details?.reason !== "download") throw error;
    return { title: (await context.tab.title()) ?? "", warnings: [] };
  }
}

// Open a tab in the window that was used last, behind the tab that is shown there; earlier tabs of the task are closed.
async function openTab({ tasks, taskId, taskTitle }) {
  await tasks.end(taskId, { close: true });
  const place = await chrome.windows.getLastFocused({ windowTypes: ["normal"] }).catch(() => null);
  const isUsable = place && place.type === "normal" && !place.incognito;
  const tab = isUsable
    ? await chrome.tabs.create({ windowId: place.id, url: EMPTY_PAGE, active: false })
    : (await chrome.windows.create({ url: EMPTY_PAGE, focused: false })).tabs[0];
  await chrome.tabs.update(tab.id, { autoDiscardable: false });
  await tasks.begin(taskId, tab.id, { title: taskTitle });
  return tab.id;
}

// End the work on the task's tabs; `closeTab` closes them too. Safe to call again.
export async function taskStop({ tasks, taskId }, { closeTab = false }) {
  await tasks.end(taskId, { close: closeTab });
  return { stopped: true };
}

// Attach the debugger; the actions that need it do so by themselves.
export async function debuggerAttach(context, { tabId }) {
  const { id } = await context.useTab(tabId);
  await context.cdp.attach(id);
  return { attached: true };
}

export async function listTabs({ tasks, taskId }) {
  const current = tasks.current(taskId);
  if (current === undefined) throw taskTabClosed("The task has no tab any more.");
  const tabs = tasks.tabsOf(taskId).map(async (tabId) =>
    resultOf({ ...await describe(tasks.tab(tabId)), current: tabId === current ? true : undefined }));
  return { tabs: await Promise.all(tabs) };
}

// Make another tab of the task its current one. It is not shown: that is the person's choice.
export async function switchTab(context, { tabId }) {
  const tab = await context.useTab(tabId);
  return resultOf({ ...await describe(tab), warnings: tab.takeNotices() });
}

// Close one of several tabs of the task, and return the tab that is current then.
export async function closeTab({ tasks, taskId }, { tabId }) {
  const { id } = tasks.find(taskId, tabId);
  if (tasks.tabsOf(taskId).length === 1) {
    throw invalidParameter("It is the task's only tab; task_stop with closeTab closes it.", { tabId });
  }
  await tasks.close(taskId, id);
  return { closed: true, ...await describe(tasks.tab(tasks.current(taskId))) };
}

async function describe(tab) {
  return resultOf({ tabId: tab.id, url: (await tab.url()) || BROWSER_PAGE, title: await tab.title() });
}
