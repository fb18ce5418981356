// The page on which a person pairs this browser with a server, confirms a pairing that the admin proposes, and ends it.
import { ask, showTexts, stateText, text } from "../page_texts.js";

const KNOWN_PROBLEMS = new Set(["invalidTicket", "invalidServer", "insecureServer", "refused", "unreachable"]);
const byId = (id) => document.getElementById(id);
let proposal = null;

async function refresh() {
  const { status, proposal: proposed } = await ask("status");
  proposal = proposed;
  byId("proposal").hidden = !proposal;
  byId("proposal-server").textContent = proposal?.server ?? "";
  byId("paired").hidden = byId("replace").hidden = !status.isPaired;
  byId("server").textContent = status.server;
  byId("principal").textContent = status.principal;
  byId("name").textContent = status.name;
  byId("since").textContent = status.pairedAt ? new Date(status.pairedAt).toLocaleString() : "";
  byId("state").className = status.isConnected ? "connected" : "offline";
  byId("state-text").textContent = status.problem === "replaced" ? text("problemReplaced") : stateText(status);
  const wasRevoked = !status.isPaired && status.problem === "refused" && status.server;
  if (wasRevoked) showProblem(text("problemRevoked"));
  else if (byId("problem").textContent === text("problemRevoked")) showProblem("");
}

function showProblem(message) {
  byId("problem").textContent = message;
  byId("problem").hidden = !message;
}

// Do what a button is for, and show its problem if it fails; buttons are off meanwhile.
async function perform(work, progress = "") {
  const buttons = [...document.querySelectorAll("button")];
  for (const button of buttons) button.disabled = true;
  byId("progress").textContent = progress;
  showProblem("");
  try {
    await work();
    await refresh();
  } catch (error) {
    await refresh().catch(() => {});
    showProblem(KNOWN_PROBLEMS.has(error.message) ? text(error.message) : error.message);
  } finally {
    byId("progress").textContent = "";
    for (const button of buttons) button.disabled = false;
  }
}

async function pair(server, ticket) {
  await ask("pair", { server, ticket });
  byId("form").reset();
}

showTexts();
document.title = text("optionsTitle");
byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  perform(() => pair(byId("address").value, byId("ticket").value), text("pairing"));
});
byId("confirm").addEventListener("click", () => perform(() => pair(proposal.server, proposal.ticket), text("pairing")));
byId("decline").addEventListener("click", () => perform(() => ask("decline")));
byId("unpair").addEventListener("click", () => perform(() => ask("unpair")));
chrome.storage.onChanged.addListener(() => refresh());
setInterval(() => document.hidden || refresh(), 2000); // the connection is no stored value
refresh();
