// What a person sees of the tasks in this browser, and takes over: the service worker's side of overlay/, popup/ and the
// badge of the toolbar button.
import { showBadge } from "./badge.js";
import { within } from "../clock.js";
import { injectContentScripts, registerContentScripts, unregisterContentScripts } from "./content_scripts.js";
import { consume, forget } from "../expected_input.js";
import { addPort, askFrames, isTopFrame, portsOf, receiveAnswer, receivePress, removePort, tabsWithPorts, tell, tellFrames } from "./frame_ports.js";
import { PointerMoves } from "./pointer_moves.js";
import { TaskControl } from "./task_control.js";
import { waitTexts } from "./wait_texts.js";
import { isOfFrame } from "./watched_pages.js";

export { requireWatch } from "./watched_pages.js";

const FRAME_MS = 500; // a page that hangs does not answer
const CANCELED = "canceled_by_user"; // the button of the banner that names the extension as the debugger of the browser

let ui = null;

// Start with the modules of the service worker; listeners are registered before this returns. `tasks.taskOf(tabId)` and
// `tasks.tabsOf(taskId)` may return promises.
export function start({ connection, tasks }) {
  ui = new PersonInput({ connection, tasks });
  ui.listen();
  return ui;
}

export const tabAdded = (taskId, tabId) => ui?.tabAdded(taskId, tabId);
export const tabsLeft = () => ui?.tabsLeft();
export const taskStatus = (message) => ui?.control.receiveStatus(message);
export const debuggerDetached = (tabId, reason) => reason === CANCELED && ui?.takeOverTab(tabId, "debugger_canceled");
export const actionStarted = (taskId, tabId) => ui?.actionStarted(taskId, tabId);
export const actionEnded = (taskId) => ui?.actionEnded(taskId);
export const isTakenOver = (taskId) => ui?.control.isTakenOver(taskId) ?? false;
export const tasksShown = () => ui?.list() ?? [];

// Do something with a page while the overlay is not in it: take a picture, read its markup.
export async function withoutOverlay(tabId, work) {
  await within(FRAME_MS, askFrames(tabId, { type: "conceal" }, isTopFrame)).catch(() => {});
  try {
    return await work();
  } finally {
    tellFrames(tabId, { type: "reveal" }, isTopFrame);
  }
}

const withheld = new Set(); // the tabs to which the extension sends input

// Withhold input from the frames of other origins in a tab, or let them have it again. A frame that does not answer in time
// hangs.
export async function withholdFrames(tabId, isWithheld) {
  if (isWithheld) withheld.add(tabId);
  else withheld.delete(tabId);
  const asking = askFrames(tabId, { type: "withhold", isWithheld }, (port) => !isTopFrame(port));
  if (isWithheld) await within(FRAME_MS, asking).catch(() => {});
}

export class PersonInput {
  constructor({ connection, tasks, control }) {
    Object.assign(this, { connection, tasks });
    this.control = control ?? new TaskControl({ connection, onChange: (taskId) => this.changed(taskId) });
    this.moves = new PointerMoves();
    this.ready = Promise.all([this.control.loaded, tasks.ready]);
    this.shown = new Set(); // the tasks whose tabs have the content scripts
    this.taken = new Set(); // the tasks that a person has taken over
    this.losses = []; // {taskId, port} of each document that has removed its overlay too often
    this.connectionStatus = { isPaired: false, isConnected: false };
  }

  listen() {
    chrome.runtime.onConnect.addListener((port) => isOfFrame(port) && this.connected(port));
    chrome.tabs.onRemoved.addListener((tabId) => forget(tabId));
    chrome.tabs.onActivated.addListener(({ tabId }) => this.moves.lose(tabId));
    chrome.tabs.onUpdated.addListener((tabId, { url }) => url && this.navigated(tabId, url));
    this.connection.onActive((session) => this.control.receiveActivation(session));
    this.connection.onStatus((status) => {
      this.connectionStatus = status;
      this.showBadge();
    });
  }

  // Without a tab, the action is in the task's current tab, or opens one.
  async actionStarted(taskId, tabId) {
    await this.ready;
    this.control.actionStarted(taskId, tabId ?? this.tasks.current(taskId));
  }

  async actionEnded(taskId) {
    await this.ready;
    this.control.actionEnded(taskId);
  }

  // A task has a tab from now on. The content scripts are registered before its page is opened, so that they are there first.
  async tabAdded(taskId, tabId) {
    if (this.control.get(taskId)?.actingTab === "") this.control.actionStarted(taskId, tabId);
    await registerContentScripts();
    if (this.control.isShown(taskId)) injectContentScripts(tabId); // else `changed` does it when an action starts
  }

  // No task has a tab any more.
  async tabsLeft() {
    if (!this.shown.size) await unregisterContentScripts();
  }

  async connected(port) {
    const tabId = port.sender.tab?.id;
    const early = [];
    const keep = (message) => early.push(message);
    port.onMessage.addListener(keep);
    await this.ready;
    const taskId = await this.tasks.taskOf(tabId);
    if (!taskId || !this.control.isShown(taskId)) {
      dismiss(port);
      return;
    }
    addPort(port);
    port.onMessage.removeListener(keep);
    port.onMessage.addListener((message) => this.receive(port, message));
    for (const message of early) this.receive(port, message);
    tell(port, this.stateFor(taskId, tabId));
  }

  receive(port, message) {
    const tabId = port.sender.tab.id;
    if (message.type === "answer") receiveAnswer(message);
    else if (message.type === "pressed") receivePress(port, message);
    else if (message.type === "input") this.receiveInput(tabId, message);
    else if (message.type === "resume") this.resumeTab(tabId);
    else if (message.type === "stop") this.stopTab(tabId);
    else if (message.type === "overlayLost" && isTopFrame(port)) this.loseOverlay(port, message);
  }

  // A page has removed the overlay too often: the person takes over, and goes on in the popup. `isKnown`: they have done so.
  async loseOverlay(port, { isKnown }) {
    const taskId = await this.tasks.taskOf(port.sender.tab.id);
    if (!taskId) return;
    this.losses = [...this.losses.filter((loss) => isOpen(loss) && loss.port !== port), { taskId, port }];
    port.onDisconnect.addListener(() => this.showBadge());
    this.showBadge();
    if (!isKnown && this.isWatched(taskId)) await this.control.takeOver(taskId, "overlay_removed");
  }

  isOverlayLost(taskId) {
    return this.losses.some((loss) => loss.taskId === taskId && isOpen(loss));
  }

  // Whether the event is the extension's own is decided before anything is awaited: events arrive in their order.
  receiveInput(tabId, event) {
    if (event.kind === "left") this.moves.lose(tabId);
    else if (!consume(tabId, event) && (event.kind !== "move" || this.moves.isMovement(tabId, event))) this.personInput(tabId, event);
  }

  async personInput(tabId, { kind }) {
    const taskId = await this.tasks.taskOf(tabId);
    if (!taskId) return;
    if (this.control.isTakenOver(taskId)) this.control.count(taskId, kind);
    else if (this.isWatched(taskId)) await this.control.takeOver(taskId, "input", kind);
  }

  async takeOverTab(tabId, reason) {
    await this.ready;
    const taskId = await this.tasks.taskOf(tabId);
    if (taskId && this.isWatched(taskId)) await this.control.takeOver(taskId, reason);
  }

  async resumeTab(tabId) {
    const taskId = await this.tasks.taskOf(tabId);
    if (taskId) await this.resume(taskId);
  }

  async resume(taskId) {
    for (const tabId of await this.tasks.tabsOf(taskId)) {
      this.moves.lose(tabId);
      this.moves.leave(tabId);
    }
    await this.control.resume(taskId);
  }

  async stopTab(tabId) {
    const taskId = await this.tasks.taskOf(tabId);
    if (taskId) await this.control.stop(taskId);
  }

  async navigated(tabId, url) {
    const taskId = await this.tasks.taskOf(tabId);
    if (taskId) this.control.countNavigation(taskId, url);
  }

  isWatched(taskId) {
    return this.control.isWatched(taskId);
  }

  // Show the state of a task in its tabs. The content scripts run as long as a task has tabs: a page that is opened in between
  // must not be there before them.
  async changed(taskId) {
    this.showBadge();
    await this.forgetMouse(taskId);
    if (this.control.isShown(taskId) !== this.shown.has(taskId)) await this.showAgain(taskId);
    for (const tabId of tabsWithPorts()) {
      const owner = await this.tasks.taskOf(tabId);
      if (owner === taskId && this.control.isShown(taskId)) tellFrames(tabId, this.stateFor(taskId, tabId));
      else if (!owner || owner === taskId) release(tabId);
    }
  }

  // During a takeover the mouse moved unseen: where it is then is no movement.
  async forgetMouse(taskId) {
    if (this.control.isTakenOver(taskId)) this.taken.add(taskId);
    else if (this.taken.delete(taskId)) for (const tabId of await this.tasks.tabsOf(taskId)) this.moves.lose(tabId);
  }

  async showAgain(taskId) {
    if (this.shown.delete(taskId)) {
      if (!this.shown.size && !this.tasks.hasTabs()) await unregisterContentScripts();
      return;
    }
    this.shown.add(taskId);
    await registerContentScripts();
    for (const tabId of await this.tasks.tabsOf(taskId)) await injectContentScripts(tabId);
  }

  stateFor(taskId, tabId) {
    const task = this.control.get(taskId);
    const state = this.control.shownIn(taskId, tabId);
    return {
      type: "state",
      taskId,
      state,
      isWithheld: withheld.has(tabId) && state !== "takeover",
      watch: { idle: "off", waiting: "off", takeover: "counting" }[state] ?? "watching",
      title: task?.title ?? "",
      isBusy: state === "takeover" && task.actingTab !== null,
      waits: ["resume", "stop"].includes(task?.waits),
      wait: waitTexts(task?.waitsFor),
      problem: problemText(task?.problem),
    };
  }

  // The tasks that the popup shows.
  list() {
    const shown = [...this.control.all].filter(([taskId]) => this.control.isShown(taskId));
    return shown.map(([taskId, { title, isTaken, waitsFor, problem }]) => ({
      taskId, title, isTaken, wait: this.isWatched(taskId) ? null : waitTexts(waitsFor), isOverlayLost: this.isOverlayLost(taskId),
      problem: problemText(problem),
    }));
  }

  showBadge() {
    showBadge({ ...this.connectionStatus, tasks: this.list() });
  }
}

const isOpen = ({ port }) => portsOf(port.sender.tab.id).includes(port);

function release(tabId) {
  for (const port of portsOf(tabId)) {
    removePort(port);
    dismiss(port);
  }
}

function dismiss(port) {
  tell(port, { type: "state", state: "idle", watch: "off", isWithheld: false });
  port.disconnect();
}

function problemText(problem) {
  if (!problem) return "";
  return { offline: chrome.i18n.getMessage("problemOffline"), refused: chrome.i18n.getMessage("problemRefused") }[problem] ?? problem;
}
