// Pairing with a server: the messages of the options page, of the popup and of the admin's page.
//
// A web page can only propose a pairing. It is kept until the person confirms it on the options page, which shows the
// server's address.
import { tasksShown } from "./takeover/person_input.js";

const PROPOSAL = "pairingProposal";
const TICKET = /^plt_[\w-]{8,200}$/;

let connection = null;
let ui = null;

// Start with the connection and the PersonInput of the service worker; listeners are registered before this returns.
export function start(modules) {
  ({ connection, ui } = modules);
  chrome.runtime.onMessageExternal.addListener((message, sender, answer) => answering(propose(message, sender), answer));
  chrome.runtime.onMessage.addListener((message, sender, answer) => {
    const respond = sender.url?.startsWith(chrome.runtime.getURL("")) ? RESPONSES[message?.type] : undefined;
    return respond ? answering(respond(message), answer) : false;
  });
  chrome.runtime.onInstalled.addListener(({ reason }) => reason === "install" && chrome.runtime.openOptionsPage());
}

function answering(promise, answer) {
  promise.then(answer, (error) => answer({ ok: false, error: error.message }));
  return true; // the answer comes later
}

// Return the address of a server and a ticket from what a person pastes: a link, or both of them.
export function readPairing(server, ticket) {
  const text = ticket.trim();
  const hash = text.lastIndexOf("#");
  const [address, found] = hash > 0 ? [text.slice(0, hash), text.slice(hash + 1)] : [server.trim(), text];
  if (!TICKET.test(found)) throw new Error("invalidTicket");
  return { server: originOf(address), ticket: found };
}

function originOf(address) {
  let url;
  try {
    url = new URL(/^https?:\/\//i.test(address) ? address : `https://${address}`);
  } catch {
    throw new Error("invalidServer");
  }
  if (!url.hostname || url.username || url.password) throw new Error("invalidServer");
  if (url.protocol !== "https:" && !isLoopback(url.hostname)) throw new Error("insecureServer");
  return url.origin;
}

const isLoopback = (host) => host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);

// The admin's page proposes its own server, and no other.
async function propose(message, sender) {
  if (message?.type !== "pair" || typeof message.ticket !== "string") return { ok: false, error: "unknownMessage" };
  const { server, ticket } = readPairing(String(message.server ?? ""), message.ticket);
  if (server !== sender.origin) return { ok: false, error: "foreignServer" };
  await chrome.storage.session.set({ [PROPOSAL]: { server, ticket } });
  await chrome.runtime.openOptionsPage();
  return { ok: true };
}

const RESPONSES = {
  status: async () => {
    const proposal = (await chrome.storage.session.get(PROPOSAL))[PROPOSAL] ?? null;
    return { ok: true, status: await connection.status(), proposal, tasks: tasksShown() };
  },
  pair: async ({ server, ticket }) => {
    const pairing = readPairing(server, ticket);
    await chrome.storage.session.remove(PROPOSAL);
    await connection.pair(pairing);
    return { ok: true, status: await connection.status() };
  },
  decline: async () => {
    await chrome.storage.session.remove(PROPOSAL);
    return { ok: true };
  },
  unpair: async () => {
    await connection.unpair();
    return { ok: true, status: await connection.status() };
  },
  resume: async ({ taskId }) => {
    await ui.resume(taskId);
    return { ok: true };
  },
  stop: async ({ taskId }) => {
    await ui.control.stop(taskId);
    return { ok: true };
  },
  takeover: async ({ taskId }) => {
    await ui.control.takeOver(taskId, "button");
    return { ok: true };
  },
};
