// A tab of a task while this service worker runs: what its page does, as the debugger reports it.
//
// Without the debugger nothing is reported: `documents` stays as it is, and no dialog is answered.
import { now } from "../clock.js";
import { ActionFailed, taskTabClosed } from "../failures.js";
import { Dialogs } from "./dialogs.js";
import { PageEvents } from "./page_events.js";

const GRACE_MS = 100; // a form is submitted by a separate task shortly after its button is clicked
const MAX_NOTICES = 10;
const NAME_LIMIT = 200;

export class TaskTab {
  constructor(id, { cdp, getTab = (tabId) => chrome.tabs.get(tabId) }) {
    this.id = id;
    this.cdp = cdp;
    this.getTab = getTab;
    this.documents = 0; // the number of documents that it has shown
    this.shownSince = 0;
    this.isLeaving = false; // a navigation to another document has started and is not committed yet
    this.stayedAt = -Infinity; // when a navigation last returned no page
    this.leavingTo = this.stayNotice = "";
    this.lastInputAt = -Infinity;
    this.pictureScale = 1; // pixels of the last screenshot per CSS pixel
    this.downloadsBegun = 0;
    this.isErrorPage = false; // the browser shows its own page in place of one that could not be opened
    this.knownUrl = ""; // of pages whose address Chrome does not tell extensions, such as about:blank
    this.windowsOpened = 0;
    this.windowsKept = 0;
    this.watch = null; // of a submit
    this.notices = [];
    this.events = new PageEvents();
    this.dialogs = new Dialogs(this);
    this.isDropped = false; // Chrome has ended the debugger's session during this action
    this.commits = []; // the ids of the documents that it has shown, as Chrome's extensions see them
    this.commitListeners = new Set();
    this.frameId = this.loaderId = "";
    this.refusals = 0;
    this.waiters = [];
    this.lost = new Promise((_, reject) => {
      this.fail = reject; // end every wait for the page with this failure
    });
    this.lost.catch(() => {});
  }

  // Its address as Chrome knows it; "" for a page that the extension may not know.
  async url() {
    try {
      return (await this.getTab(this.id)).url || this.knownUrl;
    } catch {
      throw taskTabClosed("The task's tab was closed, or its page died.", { tabId: this.id });
    }
  }

  async title() {
    const { title = "" } = await this.getTab(this.id);
    return title.split(/\s+/).filter(Boolean).join(" ").slice(0, NAME_LIMIT) || undefined;
  }

  // Remember what the debugger says of the page that is shown.
  rememberPage({ id, loaderId, url, unreachableUrl }) {
    Object.assign(this, { frameId: id, loaderId, refusals: 0, isErrorPage: Boolean(unreachableUrl), knownUrl: /^https?:/.test(url) ? "" : url });
  }

  // Chrome has ended the debugger's session; it does so also where a link opens another program.
  drop() {
    Object.assign(this, { isDropped: true, isLeaving: false, leavingTo: "", knownUrl: "" });
  }

  // Another document is shown now.
  commit(documentId) {
    this.commits.push(documentId);
    for (const listener of [...this.commitListeners]) listener(documentId);
  }

  // Call `listener(documentId)` for each document from now on; returns a function that ends that.
  onCommit(listener) {
    this.commitListeners.add(listener);
    return () => this.commitListeners.delete(listener);
  }

  // How often Chrome has refused to inject into this document.
  countRefusal() {
    this.refusals += 1;
    return this.refusals;
  }

  addNotice(notice) {
    if (this.notices.length < MAX_NOTICES) this.notices.push(notice);
  }

  // The navigation that returned no page is a download, or shows a page after all.
  withdrawStayNotice() {
    this.notices = this.notices.filter((notice) => notice !== this.stayNotice);
  }

  takeNotices() {
    return this.notices.splice(0);
  }

  mayNavigate() {
    return this.isLeaving || now() < this.lastInputAt + GRACE_MS;
  }

  // The page was closed, or has crashed.
  markLost(message = "The task's tab was closed, or its page died.") {
    this.fail(taskTabClosed(message, { tabId: this.id }));
  }

  // The page does too much of something: it is closed.
  endFlood(what, limit) {
    this.fail(new ActionFailed("STEP_EXECUTION_FAILED", `The page opened more than ${limit} ${what}; it was closed.`,
      { reason: `too_many_${what}`, limit }));
    chrome.tabs.remove(this.id).catch(() => {});
  }

  onEvent(method, params) {
    EVENTS[method]?.(this, params);
    this.events.onEvent(method, params);
    this.watch?.onEvent(method, params);
    for (const waiter of [...this.waiters]) waiter(method, params);
  }

  // Collect the names of events until `end` is called.
  recordEvents(names) {
    const seen = new Set();
    const record = (method) => {
      if (names.has(method)) seen.add(method);
    };
    this.waiters.push(record);
    return { seen, end: () => this.waiters.splice(this.waiters.indexOf(record), 1) };
  }

  // Resolve with the parameters of the next event of this name; `end` forgets it.
  nextEvent(name) {
    let listen;
    const params = new Promise((resolve) => {
      listen = (method, given) => {
        if (method === name) resolve(given);
      };
    });
    this.waiters.push(listen);
    return { params, end: () => this.waiters.splice(this.waiters.indexOf(listen), 1) };
  }
}

const stayNotice = (url) => `The page navigated to ${url}, which returned no page: a download or an empty response.`;

const OPENS_OTHER_PROGRAM = /^(?!(https?|file|data|blob|about|javascript):)[a-z][a-z0-9+.-]*:/i; // mailto:, tel:

const onNavigation = (tab, params, isLeaving) => {
  const isSame = ["sameDocument", "historySameDocument"].includes(params.navigationType);
  const isOtherTab = (params.disposition ?? "currentTab") !== "currentTab";
  if (params.frameId !== tab.frameId || isSame || isOtherTab || OPENS_OTHER_PROGRAM.test(params.url ?? "")) return;
  if (tab.isLeaving && !isLeaving && tab.leavingTo) {
    tab.stayedAt = now();
    tab.stayNotice = stayNotice(tab.leavingTo);
    tab.addNotice(tab.stayNotice);
  }
  tab.leavingTo = isLeaving ? (params.url ?? tab.leavingTo).slice(0, 500) : "";
  tab.isLeaving = isLeaving;
};

const EVENTS = {
  "Page.frameRequestedNavigation": (tab, params) => onNavigation(tab, params, true),
  "Page.frameStartedNavigating": (tab, params) => onNavigation(tab, params, true),
  "Page.frameStoppedLoading": (tab, params) => onNavigation(tab, params, false),
  "Page.frameNavigated": (tab, { frame }) => {
    if (frame.parentId) return;
    tab.withdrawStayNotice(); // a page of the back/forward cache is shown after its loading has ended
    Object.assign(tab, { documents: tab.documents + 1, shownSince: now(), isLeaving: false, leavingTo: "" });
    tab.rememberPage(frame);
    tab.dialogs.answerNext(null);
  },
  "Page.windowOpen": (tab) => {
    tab.windowsOpened += 1;
  },
  "Page.downloadWillBegin": (tab, { suggestedFilename, url }) => {
    tab.leavingTo = "";
    tab.downloadsBegun += 1;
    tab.withdrawStayNotice();
    tab.addNotice(`The page downloads ${(suggestedFilename || url || "a file").slice(0, NAME_LIMIT)} to the person's own downloads; it is not stored here.`);
  },
  "Page.javascriptDialogOpening": (tab, params) => tab.dialogs.onOpening(params),
  "Inspector.targetCrashed": (tab) => tab.markLost(),
};
