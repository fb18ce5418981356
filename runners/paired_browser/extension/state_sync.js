// Report the windows, tab groups and tabs of this browser to the server: all of them at times, and each change.
const MAX_TABS = 1000;
const TITLE_LIMIT = 300;
const URL_LIMIT = 2000;
const COALESCE_MS = 100; // changes of one tab within this time are one event
const MAX_EVENTS = 100; // a second; then the whole state is sent instead
const CHANGES = ["status", "url", "title", "pinned", "groupId"];

// An address without its user info and fragment.
export function cleanAddress(address) {
  if (!address) return undefined;
  try {
    const url = new URL(address);
    url.username = url.password = url.hash = "";
    return url.href.slice(0, URL_LIMIT);
  } catch {
    return undefined;
  }
}

export function describeTab({ id, windowId, index, groupId, url, pendingUrl, title, active, pinned, status }) {
  return withoutUndefined({
    tabId: id, windowId, index, groupId: groupId >= 0 ? groupId : undefined, url: cleanAddress(url || pendingUrl),
    title: title?.slice(0, TITLE_LIMIT), active, pinned, status,
  });
}

export const describeGroup = ({ id, windowId, title, color, collapsed }) =>
  withoutUndefined({ groupId: id, windowId, title: title?.slice(0, TITLE_LIMIT), color, collapsed });

const describeWindow = ({ id, type, focused, state }) => withoutUndefined({ windowId: id, type, focused, state });

const withoutUndefined = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

// A tab that is being closed has no place any more.
const isInWindow = ({ incognito, index }) => !incognito && index >= 0;

export class StateSync {
  constructor({ connection, api = chrome }) {
    this.connection = connection;
    this.api = api;
    this.seq = 0;
    this.timer = null;
    this.updated = new Map(); // tabId → tab: changes that are not sent yet
    this.flushing = null;
    this.sent = { second: 0, events: 0 };
    this.isFullDue = false;
    connection.onActive(({ syncIntervalMs }) => this._start(syncIntervalMs));
    this._listen();
  }

  // Send the whole state.
  async sync() {
    this.isFullDue = false;
    this.updated.clear();
    const state = await this._state();
    this._send({ type: "full_state_sync", state });
  }

  _start(everyMs) {
    clearInterval(this.timer);
    this.seq = 0;
    this.timer = setInterval(() => this.connection.isActive && this.sync(), everyMs);
    this.sync();
  }

  async _state() {
    const [windows, tabs, groups] = await Promise.all([
      this.api.windows.getAll({ windowTypes: ["normal", "popup"] }), this.api.tabs.query({}), this.api.tabGroups.query({}),
    ]);
    const shown = windows.filter(({ incognito }) => !incognito);
    const ids = new Set(shown.map(({ id }) => id));
    const listed = tabs.filter((tab) => isInWindow(tab) && ids.has(tab.windowId)).slice(0, MAX_TABS);
    const active = shown.find(({ focused }) => focused) ?? shown[0];
    return withoutUndefined({
      windows: shown.map(describeWindow), groups: groups.filter(({ windowId }) => ids.has(windowId)).map(describeGroup),
      tabs: listed.map(describeTab), activeWindowId: active?.id,
      activeTabId: listed.find((tab) => tab.active && tab.windowId === active?.id)?.id,
    });
  }

  _listen() {
    const { tabs, tabGroups } = this.api;
    tabs.onCreated.addListener((tab) => isInWindow(tab) && this._event({ kind: "created", tab: describeTab(tab) }));
    tabs.onUpdated.addListener((tabId, change, tab) => this._onUpdated(tab, change));
    tabs.onRemoved.addListener((tabId, { windowId }) => this._event({ kind: "removed", tabId, windowId }));
    tabs.onActivated.addListener(({ tabId, windowId }) => this._event({ kind: "activated", tabId, windowId }));
    tabs.onMoved.addListener((tabId, { windowId, toIndex }) => this._event({ kind: "moved", tabId, windowId, index: toIndex }));
    tabs.onAttached.addListener((tabId, { newWindowId, newPosition }) =>
      this._event({ kind: "attached", tabId, windowId: newWindowId, index: newPosition }));
    tabs.onDetached.addListener((tabId, { oldWindowId }) => this._event({ kind: "detached", tabId, windowId: oldWindowId }));
    tabs.onReplaced.addListener((tabId, replacedTabId) => this._event({ kind: "replaced", tabId, replacedTabId }));
    tabGroups.onCreated.addListener((group) => this._event({ kind: "groupCreated", group: describeGroup(group) }));
    tabGroups.onUpdated.addListener((group) => this._event({ kind: "groupUpdated", group: describeGroup(group) }));
    tabGroups.onRemoved.addListener(({ id }) => this._event({ kind: "groupRemoved", groupId: id }));
  }

  _onUpdated(tab, change) {
    if (!isInWindow(tab) || !CHANGES.some((name) => name in change)) return;
    this.updated.set(tab.id, tab);
    this.flushing ??= setTimeout(() => this._flush(), COALESCE_MS);
  }

  _flush() {
    clearTimeout(this.flushing);
    this.flushing = null;
    const tabs = [...this.updated.values()];
    this.updated.clear();
    for (const tab of tabs) this._sendEvent({ kind: "updated", tab: describeTab(tab) });
  }

  _event(event) {
    this._flush(); // earlier changes first
    this._sendEvent(event);
  }

  _sendEvent(event) {
    if (!this.connection.isActive || this.isFullDue) return;
    const second = Math.floor(Date.now() / 1000);
    this.sent = this.sent.second === second ? { second, events: this.sent.events + 1 } : { second, events: 1 };
    if (this.sent.events > MAX_EVENTS) {
      this.isFullDue = true;
      setTimeout(() => this.sync(), 1000);
    } else {
      this._send({ type: "tab_event", event });
    }
  }

  async _send(message) {
    this.seq += 1;
    try {
      const ack = await this.connection.request({ ...message, seq: this.seq });
      if (ack.resync && !this.isFullDue) await this.sync();
    } catch {
      // The connection closed, or the server does not answer: the next full state replaces what was lost.
    }
  }
}
