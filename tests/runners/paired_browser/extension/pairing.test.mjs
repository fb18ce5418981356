import assert from "node:assert/strict";
import { test } from "node:test";

import { badgeState } from "../../../../runners/paired_browser/extension/takeover/badge.js";
import { readPairing } from "../../../../runners/paired_browser/extension/pairing.js";

const TICKET = "plt_0123456789abcdef";

test("a pairing is read from a link, or from an address and a ticket", () => {
  const read = [["", `https://c.example/admin/pair/#${TICKET}`], [" c.example/ ", TICKET], ["http://127.0.0.1:8000/admin/", ` ${TICKET}\n`], ["http://localhost:9", TICKET]];
  assert.deepEqual(read.map((one) => readPairing(...one).server), ["https://c.example", "https://c.example", "http://127.0.0.1:8000", "http://localhost:9"]);
});

test("what is no ticket, no address, or not encrypted is refused with the reason", () => {
  const reasons = [
    ["https://c.example", "abc", /invalidTicket/], ["https://c.example", "", /invalidTicket/], ["", TICKET, /invalidServer/],
    ["https://a:b@c.example", TICKET, /invalidServer/], ["http://c.example", TICKET, /insecureServer/], ["http://127.0.0.1.c.example", TICKET, /insecureServer/],
  ];
  for (const [server, ticket, reason] of reasons) assert.throws(() => readPairing(server, ticket), reason);
});

test("the badge shows the most urgent state", () => {
  const online = { isPaired: true, isConnected: true };
  assert.equal(badgeState({ ...online, tasks: [{ isTaken: false }, { isTaken: true }] }), "takeover");
  assert.equal(badgeState({ ...online, tasks: [{ isTaken: false }] }), "working");
  assert.equal(badgeState({ ...online, tasks: [{ isTaken: true }, { isTaken: true, isOverlayLost: true }] }), "lostTaken");
  assert.equal(badgeState({ ...online, tasks: [{ wait: {} }, { isOverlayLost: true }] }), "lost");
  assert.equal(badgeState({ ...online, tasks: [{ isTaken: false }, { wait: {} }] }), "waiting");
  assert.equal(badgeState({ ...online, tasks: [] }), "connected");
  assert.equal(badgeState({ isPaired: true, isConnected: false, tasks: [] }), "offline");
  assert.equal(badgeState({ isPaired: false, isConnected: false, tasks: [] }), "unpaired");
});
