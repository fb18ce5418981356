// What became of each action, in chrome.storage.session: an action is stored before anything is dispatched, and its result
// until the server has it, and longer for the case that the server asks again.
const PREFIX = "action:";
const KEPT = 60; // finished actions whose result the server has
const MAX_SIZE = 4_000_000; // characters; chrome.storage.session has 10 MB

const keyOf = (actionId) => `${PREFIX}${actionId}`;

export class ActionRecords {
  constructor(storage = chrome.storage.session) {
    this.storage = storage;
    this.records = new Map(); // actionId → {state: "started" | "finished", taskId, result?, isSent?}, oldest first
    this.ready = this._load();
  }

  async get(actionId) {
    await this.ready;
    return this.records.get(actionId);
  }

  start(actionId, taskId) {
    return this._set(actionId, { state: "started", taskId, at: Date.now() });
  }

  // Keep the result message of an action.
  finish(actionId, taskId, result) {
    return this._set(actionId, { state: "finished", taskId, result, isSent: false, size: JSON.stringify(result).length, at: Date.now() });
  }

  // The server has the result.
  async markSent(actionId) {
    const record = this.records.get(actionId);
    if (record) await this._set(actionId, { ...record, isSent: true });
    await this._makeRoom();
  }

  // The results that the server has not acknowledged, oldest first.
  async unsent() {
    await this.ready;
    return [...this.records.values()].filter(({ state, isSent }) => state === "finished" && !isSent).map(({ result }) => result);
  }

  async _load() {
    const stored = Object.entries(await this.storage.get(null)).filter(([key]) => key.startsWith(PREFIX));
    for (const [key, record] of stored.sort(([, a], [, b]) => a.at - b.at)) this.records.set(key.slice(PREFIX.length), record);
  }

  async _set(actionId, record) {
    await this.ready;
    this.records.set(actionId, record);
    await this.storage.set({ [keyOf(actionId)]: record });
  }

  // Forget the oldest results that the server has.
  async _makeRoom() {
    const sent = [...this.records].filter(([, { isSent }]) => isSent);
    const size = sent.reduce((sum, [, record]) => sum + record.size, 0);
    const surplus = sent.slice(0, Math.max(sent.length - KEPT, size > MAX_SIZE ? Math.ceil(sent.length / 2) : 0));
    for (const [actionId] of surplus) this.records.delete(actionId);
    if (surplus.length) await this.storage.remove(surplus.map(([actionId]) => keyOf(actionId)));
  }
}
