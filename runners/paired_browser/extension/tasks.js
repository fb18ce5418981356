// The tasks of this browser and their tabs: those that task_start opened, and those that their pages opened.
//
// Kept in chrome.storage.session, so that a new service worker knows them; a browser that was started again does not.
import { invalidTaskTab, taskTabClosed } from "./failures.js";
import { TaskTab } from "./tab/task_tab.js";

const STORED = "tasks";
const MAX_TABS = 20;
const ENDED = new Set(["completed", "error", "removed"]);
const RESTING = new Set(["created", "ongoing", "takeover"]); // no run works in the tabs: the debugger is not needed
const REST_MS = 30_000; // in case that the work goes on
const LEFT_MS = 30_000; // the server waits so long for an action that still runs
const GROUP_COLOR = "blue";
const TITLE_LIMIT = 60;

export class Tasks {
  constructor({ cdp, storage = chrome.storage.session, tabs = chrome.tabs, groups = chrome.tabGroups, navigation = chrome.webNavigation }) {
    this.cdp = cdp;
    this.storage = storage;
    this.tabs = tabs;
    this.groups = groups;
    this.records = {}; // taskId → {tabs: [tabId], closed: [tabId], current, groupId, title, status, nextClickIds: {tabId: n}}
    this.live = new Map(); // tabId → TaskTab
    this.isTakenOver = () => false;
    this.isWorking = () => false; // whether an action of the task is running
    this.resting = new Map(); // taskId → timer
    this.left = new Map(); // taskId → [tabId] of a task that has just ended
    this.onTabAdded = async () => {};
    this.onTabsLeft = async () => {};
    this.ready = this._load();
    cdp.onEvent((tabId, method, params) => this.live.get(tabId)?.onEvent(method, params));
    cdp.onDetach((tabId) => this.live.get(tabId)?.drop());
    tabs.onRemoved.addListener((tabId) => this._changed(() => this._removed(tabId)));
    tabs.onReplaced.addListener((added, removed) => this._changed(() => this._replaced(added, removed)));
    navigation.onCommitted.addListener(({ tabId, frameId, documentId }) => frameId === 0 && this.live.get(tabId)?.commit(documentId));
    navigation.onCreatedNavigationTarget.addListener((opened) => this._changed(() => this._opened(opened)));
  }

  async _load() {
    this.records = (await this.storage.get(STORED))[STORED] ?? {};
  }

  async _changed(work) {
    await this.ready;
    await work();
  }

  async save() {
    await this.storage.set({ [STORED]: this.records });
  }

  taskOf(tabId) {
    return Object.keys(this.records).find((taskId) => this.records[taskId].tabs.includes(tabId));
  }

  tabsOf(taskId) {
    return [...(this.records[taskId]?.tabs ?? [])];
  }

  hasTabs() {
    return Object.values(this.records).some(({ tabs }) => tabs.length > 0);
  }

  // The current tab of a task, or undefined if none is open.
  current(taskId) {
    const record = this.records[taskId];
    return record && (record.tabs.includes(record.current) ? record.current : record.tabs.at(-1));
  }

  // The tab of this id, if it is one of the task's; throws INVALID_TASK_TAB or TASK_TAB_CLOSED.
  find(taskId, tabId) {
    const record = this.records[taskId];
    if (record?.tabs.includes(tabId)) return this.tab(tabId);
    const current = this.current(taskId);
    if (record && (current !== undefined || !record.closed.includes(tabId))) {
      throw invalidTaskTab(`The tab ${tabId} is not this task's, or is closed.`, { taskTabId: current ?? record.closed.at(-1) });
    }
    throw taskTabClosed("The task has no tab any more.", { tabId });
  }

  // What this service worker knows of a task's tab.
  tab(tabId) {
    if (!this.live.has(tabId)) {
      const tab = new TaskTab(tabId, { cdp: this.cdp, getTab: (id) => this.tabs.get(id) });
      tab.dialogs.isLeftToPerson = () => this.isTakenOver(this.taskOf(tabId));
      this.live.set(tabId, tab);
    }
    return this.live.get(tabId);
  }

  // Begin the work of a task in a tab: the earlier tabs of the task are no longer its own.
  async begin(taskId, tabId, { title = "", groupId = null } = {}) {
    this.records[taskId] = {
      tabs: [tabId], closed: [], current: tabId, groupId, title, status: this.records[taskId]?.status ?? "running", nextClickIds: {},
    };
    await this.save();
    await this.onTabAdded(taskId, tabId);
  }

  async setCurrent(taskId, tabId) {
    const record = this.records[taskId];
    if (record.current === tabId) return;
    record.current = tabId;
    await this.save();
  }

  nextClickId(tabId) {
    return this.records[this.taskOf(tabId)]?.nextClickIds[tabId] ?? 1;
  }

  // The elements of later documents of this tab get numbers from this one on.
  async setNextClickId(tabId, next) {
    const record = this.records[this.taskOf(tabId)];
    if (!record || next <= (record.nextClickIds[tabId] ?? 1)) return;
    record.nextClickIds[tabId] = next;
    await this.save();
  }

  // End the work in the task's tabs: they accept no more actions; with `close` they are closed.
  async end(taskId, { close = false } = {}) {
    const tabIds = this.tabsOf(taskId);
    delete this.records[taskId];
    await this.save();
    if (!this.hasTabs()) this.onTabsLeft();
    await Promise.all(tabIds.map((tabId) => this._release(tabId)));
    const closed = close ? [...tabIds, ...await this._takeLeft(taskId)] : [];
    if (closed.length) await this.tabs.remove(closed).catch(() => {});
  }

  // Return the tabs that a task left when it ended just now, without those that the person looks at.
  async _takeLeft(taskId) {
    const tabIds = this.left.get(taskId) ?? [];
    this.left.delete(taskId);
    const tabs = await Promise.all(tabIds.map((tabId) => this.tabs.get(tabId).catch(() => null)));
    return tabs.filter((tab) => tab && !tab.active).map(({ id }) => id);
  }

  // Close one tab of the task.
  async close(taskId, tabId) {
    await this.tabs.remove(tabId).catch(() => {});
    await this._removed(tabId);
  }

  // Follow the task's status on the server. A task that has ended leaves its tabs to the person; for a moment, task_stop may
  // still close them, which the server sends after the end of a batch that was canceled.
  async setStatus(taskId, status, title) {
    const record = this.records[taskId];
    if (!record) return;
    if (ENDED.has(status)) {
      if (record.status !== "takeover") this.left.set(taskId, this.tabsOf(taskId));
      setTimeout(() => this.left.delete(taskId), LEFT_MS);
      await this.end(taskId);
      return;
    }
    Object.assign(record, { status, title: title ?? record.title });
    await this.save();
  }

  // Detach the debugger from the tabs of a task in which no run works: at once if a person has taken over the page.
  rest(taskId) {
    clearTimeout(this.resting.get(taskId));
    this.resting.delete(taskId);
    const { status } = this.records[taskId] ?? {};
    if (!RESTING.has(status)) return;
    const detach = () => {
      this.resting.delete(taskId);
      if (!this.isWorking(taskId)) for (const tabId of this.tabsOf(taskId)) this.cdp.detach(tabId);
    };
    this.resting.set(taskId, setTimeout(detach, status === "takeover" ? 0 : REST_MS));
  }

  // The debugger stays attached when a service worker dies, and the page waits for answers to its dialogs: take it over.
  async restoreSessions() {
    await this.ready;
    const attached = (await this.cdp.api.getTargets()).filter((target) => target.attached).map(({ tabId }) => tabId);
    for (const tabId of attached) if (this.taskOf(tabId) !== undefined) this.cdp.attach(tabId).catch(() => {});
  }

  // The server knows these tasks; others have ended.
  async keepOnly(taskIds) {
    const known = new Set(taskIds);
    for (const taskId of Object.keys(this.records)) if (!known.has(taskId)) await this.end(taskId);
  }

  // Put a tab of the task in its tab group, which is created with the first one.
  async group(taskId, tabId, title) {
    const record = this.records[taskId];
    const isOld = await this._joinGroup(tabId, record.groupId);
    if (!isOld) record.groupId = await this._newGroup(tabId);
    if (!isOld || title) {
      await this.groups.update(record.groupId, { title: (title || "Continuity").slice(0, TITLE_LIMIT), color: GROUP_COLOR });
    }
    await this.save();
  }

  // False if there is no such group any more: the person may have dissolved it.
  async _joinGroup(tabId, groupId) {
    if (groupId === null) return false;
    return this.tabs.group({ tabIds: [tabId], groupId }).then(() => true, () => false);
  }

  async _newGroup(tabId) {
    const { windowId } = await this.tabs.get(tabId);
    return this.tabs.group({ tabIds: [tabId], createProperties: { windowId } });
  }

  async _release(tabId) {
    this.live.get(tabId)?.markLost("The task's tab was released.");
    this.live.delete(tabId);
    await this.cdp.detach(tabId);
  }

  async _removed(tabId) {
    const record = this.records[this.taskOf(tabId)];
    this.live.get(tabId)?.markLost();
    this.live.delete(tabId);
    if (!record) return;
    record.tabs = record.tabs.filter((id) => id !== tabId);
    record.closed.push(tabId);
    delete record.nextClickIds[tabId];
    await this.save();
  }

  async _replaced(added, removed) {
    const record = this.records[this.taskOf(removed)];
    if (!record) return;
    record.tabs = record.tabs.map((id) => (id === removed ? added : id));
    if (record.current === removed) record.current = added;
    this.live.get(removed)?.markLost();
    this.live.delete(removed);
    await this.save();
  }

  // A page opened a tab, which becomes the task's. (Chrome's opener of a tab may be another tab, and a person's is one too.)
  async _opened({ tabId, sourceTabId, url }) {
    const taskId = this.taskOf(sourceTabId);
    if (taskId === undefined || this.isTakenOver(taskId)) return;
    const [record, opener] = [this.records[taskId], this.tab(sourceTabId)];
    if (record.tabs.length >= MAX_TABS) {
      await this.tabs.remove(tabId).catch(() => {});
      opener.addNotice(`The page opened a new window, which was closed: a task has at most ${MAX_TABS} tabs; browser_close_tab closes one.`);
    } else {
      record.tabs.push(tabId);
      await this.save();
      this.onTabAdded(taskId, tabId);
      opener.addNotice(`The page opened the tab ${tabId} with ${url.startsWith("http") ? url.slice(0, 500) : "an empty page"}.`);
      await Promise.all([this.group(taskId, tabId).catch(() => {}), this.cdp.attach(tabId).catch(() => {})]);
    }
    opener.windowsKept += 1;
  }
}
