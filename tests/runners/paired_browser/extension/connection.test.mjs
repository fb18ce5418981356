import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.chrome = { runtime: { id: "abc", getManifest: () => ({ name: "Continuity", version: "1.0.0" }) } };
globalThis.WebSocket = { OPEN: 1 };
const { CLOSE, Connection, delayBefore, socketAddress } = await import("../../../../runners/paired_browser/extension/connection.js");

class FakeSocket {
  constructor(address) {
    Object.assign(this, { address, readyState: 1, sent: [], isClosed: false });
  }

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  close() {
    this.isClosed = true;
  }

  receive(message) {
    return this.onmessage({ data: JSON.stringify({ v: 1, ...message }) });
  }
}

function made(pairing = { server: "http://127.0.0.1:8000", clientId: "plc_1", secret: "s0" }) {
  const stored = { pairing };
  const storage = {
    get: async (key) => ({ [key]: stored[key] }),
    set: async (values) => Object.assign(stored, structuredClone(values)),
    remove: async (key) => delete stored[key],
  };
  const sockets = [];
  const openSocket = (address) => {
    sockets.push(new FakeSocket(address));
    return sockets.at(-1);
  };
  return { connection: new Connection({ storage, openSocket }), sockets, stored };
}

const session = (secret) => ({
  clientId: "plc_1", secret, name: "Mine", principal: "me", pingIntervalMs: 20_000, syncIntervalMs: 20_000, ownOrigins: [], tasks: [],
});

async function activate(socket, secret = "s1") {
  socket.onopen();
  await socket.receive({ type: "ack", id: socket.sent[0].id, ok: true, result: session(secret) });
  await new Promise((resolve) => setTimeout(resolve, 1));
}

test("a paired browser activates with its secret and keeps the new one", async () => {
  const { connection, sockets, stored } = made();
  await connection.start();
  await activate(sockets[0]);
  assert.equal(sockets[0].address, "ws://127.0.0.1:8000/ws/plugin");
  assert.deepEqual([sockets[0].sent[0].clientId, sockets[0].sent[0].secret], ["plc_1", "s0"]);
  assert.equal(stored.pairing.secret, "s1");
  assert.ok((await connection.status()).isConnected);
  connection._close();
});

test("the new secret is stored before anything else is sent or handled", async () => {
  const { connection, sockets, stored } = made();
  const order = [];
  connection.storage.set = async (values) => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    order.push("stored");
    Object.assign(stored, values);
  };
  connection.on("browser_action", () => order.push("action"));
  connection.onActive(() => order.push("active"));
  await connection.start();
  sockets[0].onopen();
  sockets[0].receive({ type: "ack", id: sockets[0].sent[0].id, ok: true, result: session("s1") });
  await sockets[0].receive({ type: "browser_action", id: "a" });
  assert.deepEqual(order, ["stored", "active", "action"]);
  connection._close();
});

test("a browser that was just paired connects again when the connection ends", async () => {
  const { connection, sockets } = made();
  const pairing = connection.pair({ server: "https://other.example", ticket: "plt_12345678" });
  await new Promise((resolve) => setTimeout(resolve, 1));
  await activate(sockets[0]);
  await pairing;
  await sockets[0].onclose({ code: 1006, reason: "" });
  assert.ok(connection.retry);
  connection._close();
});

test("a ticket pairs with a server in place of an earlier one", async () => {
  const { connection, sockets, stored } = made();
  const pairing = connection.pair({ server: "https://other.example/x", ticket: "plt_12345678" });
  await new Promise((resolve) => setTimeout(resolve, 1));
  await activate(sockets[0]);
  assert.equal((await pairing).clientId, "plc_1");
  assert.equal(sockets[0].address, "wss://other.example/ws/plugin");
  assert.deepEqual([sockets[0].sent[0].ticket, sockets[0].sent[0].secret], ["plt_12345678", undefined]);
  assert.equal(stored.pairing.server, "https://other.example");
  connection._close();
});

test("a refused secret ends the pairing, and nothing connects again", async () => {
  const { connection, sockets, stored } = made();
  await connection.start();
  sockets[0].onopen();
  await sockets[0].onclose({ code: CLOSE.notPaired, reason: "in any language" });
  await connection.start();
  assert.equal(sockets.length, 1);
  assert.deepEqual(stored.pairing, { server: "http://127.0.0.1:8000" });
  assert.equal((await connection.status()).problem, "refused");
});

test("a close with 4401 keeps the pairing, and connects again", async () => {
  const { connection, sockets, stored } = made();
  await connection.start();
  await sockets[0].onclose({ code: CLOSE.refused, reason: "no credential was sent in time" });
  assert.deepEqual([stored.pairing.secret, connection.problem], ["s0", "unreachable"]);
  assert.ok(connection.retry);
  connection._close();
});

test("a refused ticket leaves the earlier pairing as it is", async () => {
  const { connection, sockets, stored } = made();
  const pairing = connection.pair({ server: "https://other.example", ticket: "plt_12345678" });
  const refused = assert.rejects(pairing, /refused/);
  await sockets[0].onclose({ code: CLOSE.refused, reason: "The ticket is not valid." });
  await refused;
  assert.deepEqual([stored.pairing.server, stored.pairing.secret], ["http://127.0.0.1:8000", "s0"]);
  assert.ok(connection.retry);
  connection._close();
});

test("the product's own origins are known after the connection is lost, and to a new service worker", async () => {
  const { connection, sockets, stored } = made();
  await connection.start();
  sockets[0].onopen();
  await sockets[0].receive({
    type: "ack", id: sockets[0].sent[0].id, ok: true, result: { ...session("s1"), ownOrigins: ["https://own.example"] },
  });
  await sockets[0].onclose({ code: 1006, reason: "" });
  const later = made(stored.pairing).connection;
  await later.start();
  for (const one of [connection, later]) assert.deepEqual(one.ownOrigins, ["http://127.0.0.1:8000", "https://own.example"]);
  connection._close();
  later._close();
});

test("a lost connection fails what waits for an answer and is opened again later", async () => {
  const { connection, sockets } = made();
  await connection.start();
  await activate(sockets[0]);
  const waiting = assert.rejects(connection.request({ type: "full_state_sync" }));
  await sockets[0].onclose({ code: 1006, reason: "" });
  await waiting;
  assert.ok(connection.retry);
  assert.equal(connection.send({ type: "ping" }), false);
  connection._close();
});

test("a request returns its own ack", async () => {
  const { connection, sockets } = made();
  await connection.start();
  await activate(sockets[0]);
  const answer = connection.request({ type: "tab_event" });
  const { id } = sockets[0].sent.at(-1);
  await sockets[0].receive({ type: "ack", id: "another", ok: true });
  await sockets[0].receive({ type: "ack", id, ok: true, resync: true });
  assert.equal((await answer).resync, true);
  connection._close();
});

test("a message that is too large is not sent", async () => {
  const { connection, sockets } = made();
  await connection.start();
  await activate(sockets[0]);
  assert.throws(() => connection.send({ type: "x", text: "x".repeat(1_048_577) }), RangeError);
  connection._close();
});

test("the delay doubles, is at random, and has an end", () => {
  assert.deepEqual([0, 1, 2].map((attempt) => delayBefore(attempt, () => 1)), [1000, 2000, 4000]);
  assert.equal(delayBefore(50, () => 1), 30_000);
  assert.equal(delayBefore(0, () => 0), 500);
});

test("a TLS server has a TLS socket", () => {
  assert.equal(socketAddress("https://a.example"), "wss://a.example/ws/plugin");
});
