// The WebSocket to the server: activation, rotating secret, pings, reconnects, acknowledgements.
//
// What is stored in chrome.storage.local under `pairing`: server (its address), and once paired clientId, secret, name,
// principal, pairedAt and ownOrigins. The secret changes with each activation. It is stored before anything else is sent on the
// new connection, because the server accepts the previous one only until then.
import { sleep, within } from "./clock.js";

const VERSION = 1;
const ACK_MS = 10_000;
const PONG_MS = 10_000;
const FIRST_DELAY_MS = 1000; // the server refuses the third connection within a second
const LONGEST_DELAY_MS = 30_000;
const REPLACED_DELAY_MS = 60_000;
const MAX_FRAME_BYTES = 1_048_576;
// After a close with `notPaired` the pairing is over; after `refused`, such as a first message that came too late, the browser
// connects again, unless a ticket was refused.
export const CLOSE = { refused: 4401, replaced: 4409, notPaired: 4410, flood: 4429 };

// The delay before the next attempt to connect: doubled each time, at random between half of it and all of it.
export function delayBefore(attempt, random = Math.random) {
  const longest = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(attempt, 10));
  return longest * (0.5 + random() / 2);
}

export function socketAddress(server) {
  const url = new URL("/ws/plugin", server);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url.href;
}

export class Connection {
  constructor({ storage = chrome.storage.local, openSocket = (address) => new WebSocket(address) } = {}) {
    this.storage = storage;
    this.openSocket = openSocket;
    this.socket = null;
    this.isActive = false;
    this.session = null; // the result of the last activation
    this.problem = ""; // why it is not connected: "", "refused", "replaced" or "unreachable"
    this.attempts = 0;
    this.waiting = new Map();
    this.handlers = new Map();
    this.listeners = { active: [], status: [] };
    this.timers = new Set();
    this.lastId = 0;
    this.activating = null;
    this.ownOrigins = []; // of the product: those of the stored pairing, then those of each activation
    this.server = ""; // the address of the server of the open connection
    this.retry = null;
  }

  // Call `handler(message)` for each message of this type; several handlers are called in the order of their registration.
  on(type, handler) {
    this.handlers.set(type, [...(this.handlers.get(type) ?? []), handler]);
  }

  // Call `listener(session)` after each activation.
  onActive(listener) {
    this.listeners.active.push(listener);
  }

  // Call `listener(status)` whenever the status changes.
  onStatus(listener) {
    this.listeners.status.push(listener);
  }

  // What the options page and the badge show.
  async status() {
    const pairing = await this.pairing();
    const { server = "", name = "", principal = "", pairedAt = null, clientId = "" } = pairing;
    return { server, name, principal, pairedAt, clientId, isPaired: Boolean(clientId), isConnected: this.isActive, problem: this.problem };
  }

  async pairing() {
    return (await this.storage.get("pairing")).pairing ?? {};
  }

  // Connect with the stored pairing, if there is one and no connection is open or being opened.
  async start() {
    if (this.socket || this.retry) return;
    const pairing = await this.pairing();
    if (this.socket || !pairing.clientId || !pairing.secret) return;
    this.ownOrigins = [pairing.server, ...(pairing.ownOrigins ?? [])];
    this._connect(pairing.server, pairing);
  }

  // Pair with a server by a ticket, in place of an earlier pairing, which is kept until the server accepts the ticket.
  // Returns the session, or throws with what the server says.
  async pair({ server, ticket }) {
    const address = new URL(server).origin;
    this._close();
    return new Promise((resolve, reject) => this._connect(address, { ticket }, { resolve, reject }));
  }

  // Forget the server; the pairing is over for this browser.
  async unpair() {
    this._close();
    this.problem = "";
    await this.storage.remove("pairing");
    await this._tellStatus();
  }

  // Send a message if the connection is active; returns whether it was handed to the socket.
  send(message) {
    if (!this.isActive || this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(this._encoded(message));
    return true;
  }

  // Send a message and return its ack; throws if there is no connection, or no ack in time.
  async request(message, ms = ACK_MS) {
    const id = message.id ?? this.nextId();
    const answered = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    try {
      if (!this.send({ ...message, id })) throw new Error("not connected");
      return await within(ms, answered, "the server did not acknowledge the message");
    } finally {
      this.waiting.delete(id);
      answered.catch(() => {});
    }
  }

  nextId() {
    this.lastId += 1;
    return `x${Date.now().toString(36)}-${this.lastId}`;
  }

  _encoded(message) {
    const text = JSON.stringify({ v: VERSION, ...message });
    if (text.length * 3 > MAX_FRAME_BYTES && new TextEncoder().encode(text).length > MAX_FRAME_BYTES) {
      throw new RangeError(`a message of type ${message.type} exceeds ${MAX_FRAME_BYTES} bytes`);
    }
    return text;
  }

  _connect(server, credentials, pairing = null) {
    const socket = this.openSocket(socketAddress(server));
    Object.assign(this, { socket, server });
    socket.onopen = () => this._activate(socket, credentials);
    socket.onmessage = ({ data }) => this._receive(socket, data, pairing);
    socket.onclose = ({ code, reason }) => this._closed(socket, code, reason, pairing);
  }

  _activate(socket, { ticket, clientId, secret }) {
    const { id, version, name } = { id: chrome.runtime.id, ...chrome.runtime.getManifest() };
    this.activationId = this.nextId();
    socket.send(this._encoded({
      type: "activate_extension", id: this.activationId, ...(ticket ? { ticket } : { clientId, secret }),
      extension: { id, name, version }, browser: { userAgent: navigator.userAgent, language: navigator.language },
    }));
  }

  async _receive(socket, data, pairing) {
    if (socket !== this.socket) return;
    let message;
    try {
      message = JSON.parse(data);
    } catch {
      return;
    }
    if (message.type === "ack" && message.id === this.activationId) {
      this.activating = this._activated(socket, message, pairing);
      return;
    }
    await this.activating; // what follows the activation waits until its secret is stored
    if (message.type === "ack") this.waiting.get(message.id)?.resolve(message);
    else if (message.type === "pong") this.pongAt = Date.now();
    else if (message.type === "ping") this.send({ type: "pong", ...(message.id ? { id: message.id } : {}) });
    else for (const handler of this.handlers.get(message.type) ?? []) handler(message);
  }

  async _activated(socket, ack, pairing) {
    this.activationId = null;
    if (!ack.ok) {
      socket.close();
      return;
    }
    const { clientId, secret, name, principal, ownOrigins = [] } = ack.result;
    const { server } = this;
    const pairedAt = pairing ? new Date().toISOString() : (await this.pairing()).pairedAt;
    await this.storage.set({ pairing: { server, clientId, secret, name, principal, pairedAt, ownOrigins } });
    this.ownOrigins = [server, ...ownOrigins];
    if (socket !== this.socket || socket.readyState !== WebSocket.OPEN) return;
    Object.assign(this, { isActive: true, session: ack.result, attempts: 0, problem: "" });
    this._every(ack.result.pingIntervalMs, () => this._ping(socket));
    for (const listener of this.listeners.active) listener(ack.result);
    await this._tellStatus();
    pairing?.resolve(ack.result);
    socket.onclose = ({ code, reason }) => this._closed(socket, code, reason, null); // paired: it connects again
  }

  // Also keeps the service worker from being stopped as idle.
  async _ping(socket) {
    const sentAt = Date.now();
    this.send({ type: "ping", id: this.nextId() });
    await sleep(PONG_MS);
    if (socket === this.socket && !(this.pongAt >= sentAt)) this._closed(socket, 1006, "no pong", null);
  }

  async _closed(socket, code, reason, pairing) {
    if (socket !== this.socket) return;
    const { server } = this;
    this._close();
    pairing?.reject(new Error(code === CLOSE.refused ? "refused" : reason || "unreachable"));
    const isEnded = code === CLOSE.notPaired || (code === CLOSE.refused && Boolean(pairing));
    this.problem = isEnded ? "refused" : code === CLOSE.replaced ? "replaced" : "unreachable";
    if (pairing) {
      await this._keepEarlier(server);
    } else if (isEnded) {
      await this.storage.set({ pairing: { server } });
    } else {
      this._retryIn(code === CLOSE.replaced ? REPLACED_DELAY_MS : delayBefore(this.attempts));
    }
    await this._tellStatus();
  }

  // The ticket did not pair: connect with the earlier pairing again, or keep the address for the next attempt.
  async _keepEarlier(server) {
    const { clientId } = await this.pairing();
    if (clientId) this._retryIn(delayBefore(this.attempts));
    else await this.storage.set({ pairing: { server } });
  }

  _retryIn(ms) {
    this.attempts += 1;
    this.retry = setTimeout(() => {
      this.retry = null;
      this.start();
    }, ms);
  }

  _close() {
    const { socket } = this;
    Object.assign(this, { socket: null, isActive: false, session: null, activationId: null });
    clearTimeout(this.retry);
    this.retry = null;
    for (const timer of this.timers) clearInterval(timer);
    this.timers.clear();
    for (const { reject } of this.waiting.values()) reject(new Error("the connection closed"));
    this.waiting.clear();
    if (socket) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
  }

  _every(ms, work) {
    this.timers.add(setInterval(work, ms));
  }

  async _tellStatus() {
    const status = await this.status();
    for (const listener of this.listeners.status) listener(status);
  }
}
