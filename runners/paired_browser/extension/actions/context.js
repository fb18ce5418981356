// What an action works with: its parameters, its tab, its time.
import { now, waitUntil } from "../clock.js";
import { ActionFailed, invalidTaskTab, isCode } from "../failures.js";
import { judgedNodes } from "../input/locator.js";
import { RESERVE_MS } from "../input/strategy.js";
import { originOf, refuseOtherOrigin, refuseOwnPage } from "../own_pages.js";
import { waitForNavigation } from "../tab/navigation.js";

const FRAMES = { format: "jpeg", quality: 1, maxWidth: 16, maxHeight: 16, everyNthFrame: 1000 };
const DOWNLOAD_MS = 1000; // for the server's answer, which decides between a page and a download
const EVENT_MS = 300; // between the end of a navigation without a page and the download's start
const GRACE_MS = 100;
const CLOSING_MS = 300; // until Chrome says that a tab was closed
const POLL_MS = 20;
const MAX_ORIGINS = 20;

export class ActionContext {
  // `parts`: {cdp, pages, tasks, connection, isOwn, withoutOverlay, withholdFrames, requireWatch}; `deadline` is a time of performance.now().
  constructor(parts, { taskId, taskTitle = "", upload = null, files = [], expectedOrigin = "", judged = null, action = {} }, deadline) {
    const [params = {}] = Object.values(action);
    Object.assign(this, parts, { taskId, taskTitle, upload, files, deadline, judged, nodes: judgedNodes(judged, params), tab: null, isOver: false, origins: new Set() });
    this.checkAddress = (url) => {
      refuseOwnPage(url, this.isOwn);
      this.note(url);
    };
    this.checkInput = (url) => { // before input to the page of this URL
      this.checkAddress(url);
      refuseOtherOrigin(url, expectedOrigin);
    };
  }

  // The time for the work itself, before what is reserved for the answer.
  get end() {
    return this.deadline - RESERVE_MS;
  }

  msLeft() {
    return Math.max(100, this.end - now());
  }

  // Work on this tab of the task, which becomes the current one. `settled`: wait for the navigation that the last input started.
  async useTab(tabId, { settled = false } = {}) {
    this.tab = this.tasks.find(this.taskId, tabId);
    this.tab.dialogs.reset();
    await this.tasks.setCurrent(this.taskId, tabId);
    await this.attach();
    if (settled) await waitForNavigation(this.tab, this.end);
    this.checkAddress(await this.tab.url());
    await this.checkFrames();
    return this.tab;
  }

  // Attach the debugger for what the page does by itself; it may be refused. Chrome lets a tab that is not shown paint once a
  // second, and mouse events and pictures wait for that, except while its frames are watched.
  // `isLeft`: the page that is shown will be left.
  async attach({ isLeft = false } = {}) {
    const { cdp, tab } = this;
    try {
      await cdp.attach(tab.id);
      cdp.send(tab.id, "Page.startScreencast", FRAMES).catch(() => {});
    } catch (error) {
      if (!isLeft) await this._refuse(error);
    }
  }

  // Note that the action worked on the page of this URL: the server refuses those that its caller may not read.
  note(url) {
    const origin = originOf(url);
    const place = /^https?:/.test(origin) ? origin : url.slice(0, url.indexOf(":") + 1).slice(0, 30);
    if (place && this.origins.size < MAX_ORIGINS) this.origins.add(place);
  }

  // The origins of the pages on which the action worked, with that which the tab shows now.
  async pageOrigins() {
    this.note(await this.tab?.url().catch(() => "") ?? "");
    return [...this.origins];
  }

  // The action has ended: what may still go on in it sends no input any more.
  finish() {
    this.isOver = true;
    if (this.tab && this.cdp.isAttached(this.tab.id)) this.cdp.send(this.tab.id, "Page.stopScreencast").catch(() => {});
  }

  // Throw INVALID_TARGET if a frame shows a page of the product, because input could reach it there.
  async checkFrames() {
    const frames = await chrome.webNavigation.getAllFrames({ tabId: this.tab.id });
    for (const { url } of frames ?? []) if (/^(https?|blob):/.test(url)) refuseOwnPage(url, this.isOwn);
  }

  // Wait shortly for the downloads that the last input may have started; return what the page did by itself.
  async notices() {
    const { tab } = this;
    const [began, before] = [now(), tab.downloadsBegun];
    const mayStart = () => {
      const ends = [tab.lastInputAt + GRACE_MS, tab.stayedAt + EVENT_MS, tab.isLeaving ? began + DOWNLOAD_MS : 0];
      return now() < Math.min(this.end, Math.max(...ends));
    };
    while (mayStart() && tab.downloadsBegun === before) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    return tab.takeNotices();
  }

  // The failure of an action whose tab was closed: other tabs of the task may be open.
  async failureOfTab(error) {
    if (!isCode(error, "TASK_TAB_CLOSED") || !this.tab) return error;
    const { tasks, taskId, tab } = this;
    await waitUntil(() => !tasks.tabsOf(taskId).includes(tab.id), now() + CLOSING_MS);
    const current = tasks.current(taskId);
    if (current === undefined || current === tab.id) return error;
    const { effect } = error.details;
    return invalidTaskTab(`The tab ${tab.id} was closed, perhaps by its page because of this action.`,
      { ...(effect ? { effect } : {}), taskTabId: current });
  }

  // A tab in which neither the debugger nor scripts may work shows a page of the browser.
  async _refuse(error) {
    if (!(error instanceof ActionFailed)) throw error;
    if (!(await this.tab.url())) this.checkAddress("chrome://");
  }
}

// A result without undefined fields and without empty warnings.
export function resultOf({ warnings = [], ...fields }) {
  const kept = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
  return warnings.length ? { ...kept, warnings } : kept;
}
