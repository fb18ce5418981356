// What became of each action, in chrome.storage.session: an action is stored before anything is dispatched, and its result
// until the server has it, and longer for the case that the server asks again.
const PREFIX = "action:";
const KEPT = 60; // finished actions whose result the server has
const MAX_BYTES = 4_000_000; // of chrome.storage.session's 10 MB

const keyOf = (actionId) => `${PREFIX}${actionId}`;

export class ActionRecords {
  constructor(storage = chrome.storage.session) {
    this.storage = storage;
  }

  // {state: "started" | "finished", taskId, result?, isSent?} or undefined.
  async get(actionId) {
    const key = keyOf(actionId);
    return (await this.storage.get(key))[key];
  }

  async start(actionId, taskId) {
    await this.storage.set({ [keyOf(actionId)]: { state: "started", taskId, at: Date.now() } });
  }

  // Keep the result message of an action.
  async finish(actionId, taskId, result) {
    await this._makeRoom();
    await this.storage.set({ [keyOf(actionId)]: { state: "finished", taskId, result, isSent: false, at: Date.now() } });
  }

  // The server has the result.
  async markSent(actionId) {
    const record = await this.get(actionId);
    if (record) await this.storage.set({ [keyOf(actionId)]: { ...record, isSent: true } });
  }

  // The results that the server has not acknowledged, oldest first.
  async unsent() {
    return (await this._all()).filter(([, { state, isSent }]) => state === "finished" && !isSent).map(([, { result }]) => result);
  }

  async _all() {
    const stored = await this.storage.get(null);
    return Object.entries(stored).filter(([key]) => key.startsWith(PREFIX)).sort(([, a], [, b]) => a.at - b.at);
  }

  // Forget the oldest results that the server has.
  async _makeRoom() {
    const sent = (await this._all()).filter(([, { isSent }]) => isSent);
    const isFull = (await this.storage.getBytesInUse(null)) > MAX_BYTES;
    const surplus = sent.slice(0, Math.max(sent.length - KEPT, isFull ? Math.ceil(sent.length / 2) : 0));
    if (surplus.length) await this.storage.remove(surplus.map(([key]) => key));
  }
}
