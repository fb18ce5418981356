// What the toolbar button opens: the tasks in this browser, with the overlay's buttons, which a page's dialog may cover.
import { ask, showTexts, stateText, text } from "../page_texts.js";

const byId = (id) => document.getElementById(id);

const made = (tag, className, content = "") => {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = content;
  return element;
};

function button(type, taskId, className, label) {
  const element = made("button", className, label);
  element.addEventListener("click", async () => {
    element.disabled = true;
    await ask(type, { taskId });
    await refresh();
  });
  return element;
}

function stateOf({ isTaken, isOverlayLost, wait }) {
  if (isOverlayLost) return text(isTaken ? "popupLostTaken" : "popupLostWorking");
  if (isTaken) return text("popupTaskTaken");
  return wait ? [wait.heading, wait.subject].filter(Boolean).join(" — ") : text("popupTaskWorking");
}

function card(task) {
  const { taskId, title, isTaken, isOverlayLost, wait, problem } = task;
  const element = made("section", "task");
  const row = made("div", "row");
  if (isTaken) row.append(button("resume", taskId, "main", text("resume")));
  else row.append(button("takeover", taskId, "", text("popupTakeover")));
  row.append(button("stop", taskId, "danger", text("stop")));
  const state = made("p", isOverlayLost || wait ? "notice" : "quiet", stateOf(task));
  element.append(made("p", "title", title || text("popupUntitled")), state, made("p", "problem", problem), row);
  return element;
}

async function refresh() {
  const { status, tasks } = await ask("status");
  byId("state").className = `state ${status.isConnected ? "connected" : status.isPaired ? "" : "unpaired"}`;
  byId("state-text").textContent = stateText(status);
  byId("server").textContent = status.isPaired ? status.server : "";
  byId("tasks").replaceChildren(...tasks.map(card));
  byId("none").hidden = tasks.length > 0 || !status.isPaired;
  byId("settings").textContent = text(status.isPaired ? "popupSettings" : "popupPair");
  byId("settings").className = status.isPaired ? "" : "main";
}

showTexts();
byId("settings").addEventListener("click", () => chrome.runtime.openOptionsPage().then(() => window.close()));
refresh();
