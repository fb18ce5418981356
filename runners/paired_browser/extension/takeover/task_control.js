// The state of each task of this browser: what the server says of it, whether an action runs, and whether a person has
// taken its page over. A takeover counts at once, before the server has confirmed it; a takeover that could not be sent is
// sent after the next activation.
const KEY = "taskControl";
const ENDED = new Set(["completed", "error", "removed"]);
const RUNNING = new Set(["created", "running"]);
const ACTIVITY_MS = 5000;
const MAX_NAVIGATIONS = 20;
const COUNTERS = { press: "clicks", key: "keys", text: "texts", wheel: "wheels" };

export class TaskControl {
  constructor({ connection, storage = chrome.storage.session, onChange = () => {}, setTimer = (...timer) => setTimeout(...timer) }) {
    Object.assign(this, { connection, storage, onChange, setTimer });
    this.all = new Map();
    this.loaded = this.load();
  }

  async load() {
    const stored = (await this.storage.get(KEY))[KEY] ?? [];
    for (const [taskId, task] of stored) {
      if (!this.all.has(taskId)) this.all.set(taskId, { ...newTask(), ...task });
    }
  }

  get(taskId) {
    return this.all.get(taskId);
  }

  isTakenOver(taskId) {
    return Boolean(this.get(taskId)?.isTaken);
  }

  // Return whether an agent works on the task, or a person has its page.
  isWatched(taskId) {
    const task = this.get(taskId);
    return Boolean(task) && (task.isTaken || task.actingTab !== null || RUNNING.has(task.status));
  }

  // Return whether the person is shown the task: it is watched, or waits for a person's approval or answer.
  isShown(taskId) {
    return this.isWatched(taskId) || Boolean(this.get(taskId)?.waitsFor);
  }

  // Return what the overlay of one of the task's tabs shows: idle, hidden, waiting, ongoing or takeover.
  shownIn(taskId, tabId) {
    if (!this.isWatched(taskId)) return this.isShown(taskId) ? "waiting" : "idle";
    const { isTaken, actingTab } = this.get(taskId);
    if (isTaken) return "takeover";
    return actingTab === tabId ? "ongoing" : "hidden";
  }

  // An action began in a tab of the task; null: it has no tab yet.
  actionStarted(taskId, tabId) {
    const task = this.known(taskId);
    this.change(taskId, { waitsFor: null, actingTab: tabId ?? "", status: RUNNING.has(task.status) ? task.status : "running" });
  }

  actionEnded(taskId) {
    if (this.get(taskId)) this.change(taskId, { actingTab: null });
  }

  // The server reports the status of a task. One that it sent before it knew of a takeover or resume changes neither.
  receiveStatus({ taskId, status, title, waitsFor = null }) {
    if (ENDED.has(status)) {
      this.drop(taskId);
      return;
    }
    const changes = { status, waitsFor, ...(title === undefined ? {} : { title }) };
    if (!this.known(taskId).waits) changes.isTaken = status === "takeover";
    this.change(taskId, changes);
  }

  // The connection is active: take over the server's list of tasks, and send what could not be sent.
  async receiveActivation({ tasks = [] }) {
    await this.loaded;
    const listed = new Set(tasks.map(({ taskId }) => taskId));
    for (const taskId of [...this.all.keys()]) if (!listed.has(taskId)) this.drop(taskId);
    for (const task of tasks) this.receiveStatus(task);
    for (const [taskId, { waits, reason }] of [...this.all]) {
      if (waits) await this.request(taskId, waits, waits === "takeover" ? { reason } : {});
    }
  }

  // A person takes the page over; `event` is the kind of input that did it.
  async takeOver(taskId, reason, event = "") {
    const task = this.get(taskId);
    if (!task || task.isTaken) return;
    this.change(taskId, { isTaken: true, waitsFor: null, problem: "", reason });
    const counts = COUNTERS[event] ? { counts: { [COUNTERS[event]]: 1 } } : {};
    await this.request(taskId, "takeover", { reason, ...counts });
  }

  async resume(taskId) {
    if (!this.isTakenOver(taskId)) return;
    await this.sendActivity(taskId);
    await this.request(taskId, "resume");
  }

  async stop(taskId) {
    if (this.get(taskId)) await this.request(taskId, "stop");
  }

  // Count an input of the person who has the page.
  count(taskId, kind) {
    const task = this.get(taskId);
    const counter = COUNTERS[kind];
    if (!task?.isTaken || !counter) return;
    task.counts[counter] = (task.counts[counter] ?? 0) + 1;
    this.planActivity(taskId, task);
  }

  // The person who has the page went to a document.
  countNavigation(taskId, url) {
    const task = this.get(taskId);
    if (!task?.isTaken || !/^https?:/.test(url)) return;
    const { origin, pathname } = new URL(url);
    if (task.navigations.length < MAX_NAVIGATIONS) task.navigations.push(`${origin}${pathname}`.slice(0, 500));
    task.counts.navigations = (task.counts.navigations ?? 0) + 1;
    this.planActivity(taskId, task);
  }

  planActivity(taskId, task) {
    task.timer ??= this.setTimer(() => this.sendActivity(taskId), ACTIVITY_MS);
  }

  async sendActivity(taskId) {
    const task = this.get(taskId);
    if (!task) return;
    clearTimeout(task.timer);
    task.timer = undefined;
    const { counts, navigations } = task;
    if (!Object.keys(counts).length) return;
    Object.assign(task, { counts: {}, navigations: [] });
    const message = { type: "activity", taskId, counts, ...(navigations.length ? { navigations } : {}) };
    await this.connection.request(message).catch(() => {}); // counts are no reason to fail
  }

  // Send takeover, resume or stop, and follow what the server answers.
  async request(taskId, type, fields = {}) {
    this.change(taskId, { waits: type, problem: "" });
    let ack;
    try {
      ack = await this.connection.request({ type, taskId, ...fields });
    } catch {
      // A takeover stays, and is sent later; the person presses the other buttons again.
      if (this.get(taskId)) this.change(taskId, { waits: type === "takeover" ? type : this.unconfirmed(taskId), problem: "offline" });
      return;
    }
    if (!this.get(taskId)) return; // it ended meanwhile
    const { status } = ack.result ?? {};
    if (ack.ok) this.change(taskId, { waits: "", ...(status ? { status } : {}), ...(type === "takeover" ? {} : { isTaken: false }) });
    else if (ack.error?.code === "NOT_FOUND") this.drop(taskId);
    else this.refused(taskId, type, ack.error);
  }

  // CONFLICT: the task has ended or is not taken over, so the server's last status holds. After any other refusal the
  // person keeps the page, and the takeover is sent again.
  refused(taskId, type, error) {
    const isConflict = error?.code === "CONFLICT";
    const isTaken = this.get(taskId).status === "takeover" || (this.isTakenOver(taskId) && !isConflict);
    const problem = type === "takeover" && isConflict ? "" : error?.message || "refused";
    this.change(taskId, { isTaken, problem });
    this.change(taskId, { waits: this.unconfirmed(taskId) });
  }

  // "takeover" if the person has the page and the server does not know it yet.
  unconfirmed(taskId) {
    const { isTaken, status } = this.get(taskId);
    return isTaken && status !== "takeover" ? "takeover" : "";
  }

  known(taskId) {
    if (!this.all.has(taskId)) this.all.set(taskId, newTask());
    return this.get(taskId);
  }

  change(taskId, changes) {
    Object.assign(this.known(taskId), changes);
    this.store();
    this.onChange(taskId);
  }

  drop(taskId) {
    if (!this.all.delete(taskId)) return;
    this.store();
    this.onChange(taskId);
  }

  store() {
    const stored = [...this.all].map(([taskId, { status, title, waitsFor, isTaken, waits, reason }]) =>
      [taskId, { status, title, waitsFor, isTaken, waits, reason }]);
    this.storage.set({ [KEY]: stored });
  }
}

const newTask = () => ({
  status: "created", title: "", waitsFor: null, actingTab: null, isTaken: false, waits: "", reason: "", problem: "", counts: {}, navigations: [],
});
