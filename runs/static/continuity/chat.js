// A task's page: the conversation as it is streamed, the tool calls, the newest screenshot and the message form.
// Untrusted text is inserted as text, never as HTML.
"use strict";

(() => {
  const root = document.querySelector("[data-chat]");
  if (!root) return;
  const find = (name) => root.querySelector(`[data-chat-${name}]`);
  const turns = JSON.parse(document.getElementById("chat-turns").textContent); // who is to move: {label, tone} by turn
  const log = find("log"), tools = find("tools"), form = find("form");
  const streaming = new Map(); // run id -> {element, shown, before, hasEnded} of the message that is being streamed
  const questions = new Map(); // run id -> the message element of the open question
  const box = form?.querySelector("textarea"), placeholder = box?.placeholder;
  let status = root.dataset.status, takeoverBy = root.dataset.takeoverBy, turn = root.dataset.turn;
  let retry = 0;
  const STATUSES = new Set(["created", "running", "ongoing", "takeover", "completed", "error"]);

  function addMessage(role, text, runId) {
    find("empty")?.remove();
    const element = document.createElement("article");
    element.className = "chat-message";
    element.dataset.role = role;
    const paragraph = document.createElement("p");
    paragraph.textContent = revealed(text);
    element.append(paragraph);
    if (runId) element.dataset.run = runId;
    if (role === "user") isAtEnd = true;
    log.append(element);
    scrollToEnd();
    return element;
  }

  // Scroll at most once per frame, and only if the user has not scrolled up.
  let isAtEnd = true, isScheduled = false;
  log.addEventListener("scroll", () => { isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80; });
  function scrollToEnd() {
    if (!isAtEnd || isScheduled) return;
    isScheduled = true;
    requestAnimationFrame(() => { isScheduled = false; log.scrollTop = log.scrollHeight; });
  }

  function startStreaming(runId) {
    const element = addMessage("assistant", "", runId), box = document.createElement("div");
    element.firstChild.replaceWith(box);
    const message = { element, shown: streamMarkdown(box, scrollToEnd), before: "", hasEnded: false };
    streaming.set(runId, message);
    return message;
  }

  function appendDelta(data) {
    if (!streaming.has(data.runId) && !data.content) return; // a turn with tool calls and no text
    const message = streaming.get(data.runId) || startStreaming(data.runId);
    message.element.dataset.growing = "";
    let text = message.shown.text;
    if (message.hasEnded) { // the next turn of the same run
      text = message.before = text && `${text.trimEnd()}\n\n`;
      message.hasEnded = false;
    }
    if (data.restarted) text = message.before; // the turn starts again
    message.shown.set(text + revealed(data.content || ""), Boolean(data.finished));
    if (data.finished) { message.hasEnded = true; delete message.element.dataset.growing; }
  }

  // Show the agent's question with its suggested answers; the form below sends any other answer.
  function showQuestion(data) {
    endStreaming(data.runId); // later text comes after the question
    const question = addMessage("question", data.question || gettext("The run waits for a person."), data.runId);
    if (data.type === "confirmation" && data.decisionId) {
      const link = document.createElement("a");
      link.className = "cty-link";
      link.href = root.dataset.decisionUrl.replace("DECISION", encodeURIComponent(data.decisionId));
      link.textContent = gettext("confirm or refuse");
      question.append(link);
    }
    renderMarkdown(question.firstChild);
    questions.set(data.runId, question);
    if (!form || data.type !== "answer") return;
    box.placeholder = gettext("Answer to the agent (Enter sends, Shift+Enter starts a new line)");
    if (!data.suggestions?.length) return;
    const label = document.createElement("footer");
    label.textContent = gettext("Answers that the agent suggests");
    question.append(label);
    const choices = document.createElement("div");
    choices.className = "chat-suggestions";
    for (const text of data.suggestions) {
      const choice = document.createElement("button");
      choice.type = "button";
      choice.className = "cty-button";
      choice.textContent = revealed(text);
      choice.addEventListener("click", () => sendSuggestion(choices, data, text));
      choices.append(choice);
    }
    question.append(choices);
    scrollToEnd();
  }

  async function sendSuggestion(choices, question, text) {
    const body = new FormData();
    body.set("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
    body.set("runId", question.runId);
    body.set("asked", question.expiresAt);
    body.set("suggestion", text);
    for (const button of choices.children) button.disabled = true;
    try { await post(root.dataset.answerUrl, body); } finally { for (const button of choices.children) button.disabled = false; }
  }

  function closeQuestion(runId) { // it was answered, or the run ended
    for (const part of questions.get(runId)?.querySelectorAll(".chat-suggestions, a, footer") ?? []) part.remove();
    questions.delete(runId);
    if (box) box.placeholder = placeholder;
  }

  function showMessage(data) {
    if (data.role === "assistant" && questions.has(data.runId)) return; // the question is shown already
    if (data.role === "user") closeQuestion(data.runId);
    const message = data.role === "assistant" && streaming.get(data.runId);
    if (!message) {
      const added = addMessage(data.role, data.content, data.runId);
      if (data.role === "assistant") renderMarkdown(added.firstChild);
      return;
    }
    endStreaming(data.runId);
    // Keep the text of earlier turns, and add the final reply unless it was streamed.
    const streamed = message.shown.text.trimEnd(), content = revealed(data.content);
    message.shown.set(streamed.endsWith(content.trim()) ? streamed : `${streamed}\n\n${content}`.trimStart(), true);
  }

  function showToolCall(data) {
    const call = String(data.toolCallId || data.tool);
    let line = [...tools.children].find((one) => one.dataset.call === call && one.dataset.run === data.runId);
    if (!line) {
      line = document.createElement("li");
      line.dataset.call = call;
      line.dataset.run = data.runId;
      const dot = document.createElement("i");
      dot.className = "cty-dot";
      const name = document.createElement("span");
      name.className = "cty-mono";
      name.textContent = revealed(data.tool);
      line.append(dot, name);
      find("no-tools")?.remove();
      if (data.args && Object.keys(data.args).length) {
        line.title = JSON.stringify(data.args, null, 2);
        const brief = document.createElement("span");
        brief.className = "cty-dim chat-args";
        brief.textContent = revealed(briefArguments(data.args));
        line.append(brief);
      }
      tools.append(line);
      tools.scrollTop = tools.scrollHeight; // scroll the list only, not the page
    }
    if (data.errorCode && !line.querySelector(".cty-code")) {
      const code = document.createElement("span");
      code.className = "cty-code";
      code.textContent = data.errorCode;
      line.append(code);
    }
    line.firstChild.dataset.tone = data.phase === "start" ? "running" : data.ok ? "succeeded" : "failed";
  }

  // A call's arguments on one line, as the server shows those of earlier calls (runs/admin/runs/conversation.py).
  const UNSAID = new Set(["tabId"]), PLAIN = new Set(["command", "goal", "path", "query", "question", "result", "url"]);
  function briefArguments(args) {
    const parts = Object.entries(args).filter(([name, value]) => !UNSAID.has(name) && value !== null && value !== false && value !== "").map(([name, value]) => {
      if (value === true) return name;
      if (typeof value === "string") return PLAIN.has(name) ? value : `${name} ${value}`;
      return `${name} ${JSON.stringify(value)}`;
    });
    return parts.join(" · ").slice(0, 160);
  }

  function setStatus(newStatus, by) {
    status = newStatus;
    takeoverBy = by || "";
    showStatus();
  }

  // What an event says about who is to move; undefined if it says nothing.
  function turnAfter(event) {
    if (event.type === "run.queued") return isUnfinished() ? undefined : "queued";
    if (event.type === "statusUpdate" && turn === "failed" && ["ongoing", "completed"].includes(event.data.status)) return "answered"; // it has a result
    if (event.type === "run.waiting") return { answer: "answer", confirmation: "decision" }[event.data.type];
    return { "run.started": "works", "run.resumed": "works", "run.succeeded": "answered", "run.partial_success": "answered", "run.failed": "failed", "run.canceled": "stopped" }[event.type];
  }

  const isUnfinished = () => ["queued", "works", "answer", "decision"].includes(turn);

  function showTurn() {
    const now = status === "takeover" ? "takeover" : turn, pill = document.createElement("span");
    pill.className = "cty-pill";
    pill.dataset.tone = turns[now].tone;
    pill.textContent = turns[now].label;
    find("state").replaceChildren(pill);
    root.dataset.turnNow = now;
    document.title = document.title.replace(root.dataset.turnLabel, turns[now].label);
    root.dataset.turnLabel = turns[now].label;
  }

  function showStatus() {
    root.dataset.statusNow = status;
    showTurn();
    const can = { takeover: status !== "takeover", resume: status === "takeover", stop: status === "takeover" || isUnfinished() };
    for (const actionForm of root.querySelectorAll("[data-chat-action]")) actionForm.hidden = !can[actionForm.dataset.chatAction];
    find("takeover").hidden = status !== "takeover";
    find("takeover").textContent = gettext("%s. The agent makes no calls until it is given back, for at most 30 minutes.").replace("%s", whoControls());
    const busy = find("busy");
    if (busy) busy.hidden = !["queued", "works"].includes(turn);
  }

  function whoControls() {
    if (takeoverBy && takeoverBy === root.dataset.operator) return gettext("You control the page");
    return gettext("%s controls the page").replace("%s", takeoverBy.replace(/^admin:/, "") || gettext("A person"));
  }

  function endStreaming(runId) {
    const message = streaming.get(runId);
    if (message) delete message.element.dataset.growing;
    streaming.delete(runId);
  }

  function showFailure(event) {
    closeQuestion(event.data.runId);
    endStreaming(event.data.runId);
    const reason = event.data.message || event.data.reason || "";
    const title = event.data.errorCode || (event.type === "run.canceled" ? gettext("Canceled") : gettext("Failed"));
    addMessage("failure", reason ? `${title}: ${reason}` : title, event.data.runId);
  }

  function handle(event) {
    const data = event.data, next = turnAfter(event);
    if (next) { turn = next; showStatus(); }
    if (event.type === "chatDelta") appendDelta(data);
    else if (event.type === "message") showMessage(data);
    else if (event.type === "toolUsed") showToolCall(data);
    else if (event.type === "statusUpdate" && STATUSES.has(data.status) && !("step" in data)) setStatus(data.status, data.by);
    else if (event.type === "structuredOutput") addMessage("output", JSON.stringify(data.output ?? data.error, null, 2), data.runId);
    else if (event.type === "run.waiting" && data.type !== "takeover") showQuestion(data);
    else if (event.type === "run.resumed") closeQuestion(data.runId);
    else if (event.type === "run.started") find("no-worker")?.remove();
    else if (event.type === "run.failed" || event.type === "run.canceled") showFailure(event);
    else if (event.type === "artifact.created" && data.kind === "screenshot") showScreenshot(data.artifactId);
  }

  function showScreenshot(artifactId) {
    const url = root.dataset.imageUrl.replace("ARTIFACT", encodeURIComponent(artifactId));
    const shot = find("shot");
    shot.href = url;
    shot.querySelector("img").src = url;
    shot.hidden = !root.querySelector("[data-live]").hidden; // hidden while the live page is shown
    find("blank").hidden = true;
  }

  let after = Number(root.dataset.after);
  function listen() {
    const source = new EventSource(`${root.dataset.chat}?after=${after}`);
    source.onopen = () => { find("live").hidden = false; retry = 0; };
    source.onmessage = (message) => {
      const event = JSON.parse(message.data);
      if (event.seq <= after) return;
      after = event.seq;
      handle(event);
    };
    source.onerror = () => { // the browser itself reconnects unless the source is closed
      find("live").hidden = true;
      if (source.readyState !== EventSource.CLOSED) return;
      source.close();
      retry = Math.min(retry + 1, 10);
      setTimeout(listen, retry * 1000);
    };
  }

  async function post(url, body) {
    const problem = find("problem");
    let error = "";
    try {
      const response = await fetch(url, { method: "POST", body, headers: { "X-Requested-With": "fetch" } });
      const result = await response.json().catch(() => ({}));
      if (response.redirected) error = gettext("You are signed out. Reload this page to sign in.");
      else if (!response.ok || !result.ok) error = result.message || gettext("The server answered with status %s.").replace("%s", response.status);
    } catch { error = gettext("The server is unavailable. Nothing was sent; try again."); }
    if (problem) {
      problem.hidden = !error;
      problem.textContent = error;
    }
    return !error;
  }

  form?.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (form.querySelector("button").disabled) return; // Enter was pressed twice
    const body = new FormData(form);
    form.dataset.key ||= Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    body.set("key", form.dataset.key); // the idempotency key: a repeated request adds no second message
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      const sent = await post(form.action, body);
      if (sent && form.dataset.key === body.get("key")) { form.reset(); delete form.dataset.key; } // else the user has typed a new text
    } finally { button.disabled = false; }
  });

  box?.addEventListener("input", () => { delete form.dataset.key; });
  box?.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); form.requestSubmit(); }
  });

  for (const actionForm of root.querySelectorAll("[data-chat-action]")) {
    actionForm.addEventListener("submit", (event) => { event.preventDefault(); post(actionForm.action, new FormData(actionForm)); });
  }

  for (const paragraph of log.querySelectorAll("[data-role=assistant] > p")) renderMarkdown(paragraph);
  log.scrollTop = log.scrollHeight;
  showStatus();
  listen();
})();
