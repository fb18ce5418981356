// The debugger (DevTools protocol) of the task's tabs: attach, send commands and input, receive events, detach.
import { within } from "./clock.js";
import * as expectedInput from "./expected_input.js";
import { cdpPermissionDenied, cdpUnavailable, TimedOut } from "./failures.js";

const PROTOCOL_VERSION = "1.3";
const ATTACH_MS = 4000;
const REFUSED = /not allowed|permission|cannot access|cannot attach|policy|chrome:\/\/|extensions? gallery/i;
const ATTACHED_BEFORE = /already attached/i;

export class Debugger {
  constructor({ api = chrome.debugger, input = expectedInput, prepare = async () => {} } = {}) {
    this.api = api;
    this.input = input;
    this.prepare = prepare; // (tabId) => promise: sends the first commands of an attached tab
    this.sessions = new Map(); // tabId → promise that resolves when it is attached
    this.eventListeners = [];
    this.detachListeners = [];
    api.onEvent.addListener((source, method, params) => {
      if (source.tabId !== undefined && !source.sessionId) this._onEvent(source.tabId, method, params ?? {});
    });
    api.onDetach.addListener((source, reason) => this._onDetach(source.tabId, reason));
  }

  // Call `listener(tabId, method, params)` for each event of an attached tab.
  onEvent(listener) {
    this.eventListeners.push(listener);
  }

  // Call `listener(tabId, reason)` when the browser has ended a session: target_closed or canceled_by_user.
  onDetach(listener) {
    this.detachListeners.push(listener);
  }

  isAttached(tabId) {
    return this.sessions.has(tabId);
  }

  // Attach to a tab, unless it is attached; throws CDP_PERMISSION_DENIED or CDP_UNAVAILABLE.
  async attach(tabId) {
    if (!this.sessions.has(tabId)) {
      const opening = this._open(tabId);
      this.sessions.set(tabId, opening);
      opening.catch(() => {
        if (this.sessions.get(tabId) === opening) this.sessions.delete(tabId);
      });
    }
    try {
      await within(ATTACH_MS, this.sessions.get(tabId));
    } catch (error) {
      if (error instanceof TimedOut) throw cdpUnavailable("The browser did not attach to the tab in time.");
      if (REFUSED.test(error.message)) throw cdpPermissionDenied("The browser does not allow attaching to this tab.");
      throw cdpUnavailable("The browser could not attach to the tab.");
    }
  }

  async _open(tabId) {
    try {
      await this.api.attach({ tabId }, PROTOCOL_VERSION);
    } catch (error) {
      if (!ATTACHED_BEFORE.test(error.message)) throw error;
      // By an earlier service worker of this extension, whose state is gone: begin anew. Another debugger stays.
      await this.api.detach({ tabId });
      await this.api.attach({ tabId }, PROTOCOL_VERSION);
    }
    await this.prepare(tabId);
  }

  async detach(tabId) {
    if (!this.sessions.delete(tabId)) return;
    await this.api.detach({ tabId }).catch(() => {});
  }

  // The session has proved to be lost: the next use attaches again.
  forget(tabId) {
    this.sessions.delete(tabId);
  }

  // Send a command; throws what the browser says.
  send(tabId, method, params = {}) {
    return this.api.sendCommand({ tabId }, method, params);
  }

  // Send commands of the Input domain in this order, without waiting for each reply. Each is announced before.
  async sendInput(tabId, messages) {
    const sending = messages.map(async ([method, params]) => {
      const announced = this.input.announce(tabId, method, params);
      try {
        return await this.send(tabId, method, params);
      } finally {
        Promise.resolve(this.input.settle(announced)).catch(() => {});
      }
    });
    return Promise.all(sending);
  }

  _onEvent(tabId, method, params) {
    for (const listener of this.eventListeners) listener(tabId, method, params);
  }

  _onDetach(tabId, reason) {
    if (tabId === undefined || !this.sessions.delete(tabId)) return;
    for (const listener of this.detachListeners) listener(tabId, reason);
  }
}
