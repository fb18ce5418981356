// A task's page: what the agent says as it says it, the tools it uses, the newest picture, and the place to answer.
// Everything from outside is put in as text, never as HTML.
"use strict";

(() => {
  const root = document.querySelector("[data-chat]");
  if (!root) return;
  const find = (name) => root.querySelector(`[data-chat-${name}]`);
  const tones = JSON.parse(document.getElementById("chat-tones").textContent);
  const log = find("log"), tools = find("tools"), form = find("form");
  const speaking = new Map(); // run id -> the bubble that grows
  const questions = new Map(); // run id -> the bubble of the question that is open
  const box = form?.querySelector("textarea"), placeholder = box?.placeholder;
  let status = root.dataset.status, holder = root.dataset.holder;
  let retry = 0;

  function bubble(role, text, runId) {
    find("empty")?.remove();
    const said = document.createElement("article");
    said.className = "chat-said";
    said.dataset.role = role;
    const words = document.createElement("p");
    words.textContent = text;
    said.append(words);
    if (runId) said.dataset.run = runId;
    if (role === "user") following = true;
    log.append(said);
    keepUp();
    return said;
  }

  // Once per picture of the screen, however much comes; who has scrolled up reads on in peace.
  let following = true, isDue = false;
  log.addEventListener("scroll", () => { following = log.scrollHeight - log.scrollTop - log.clientHeight < 80; });
  function keepUp() {
    if (!following || isDue) return;
    isDue = true;
    requestAnimationFrame(() => { isDue = false; log.scrollTop = log.scrollHeight; });
  }

  function grow(data) {
    let said = speaking.get(data.runId);
    if (!said && !data.content) return; // a turn of calls alone
    if (!said) speaking.set(data.runId, said = bubble("assistant", "", data.runId));
    said.dataset.growing = "";
    const words = said.firstChild;
    if (said.dataset.over) { // the next turn of the same run
      said.before = words.textContent = words.textContent && `${words.textContent.trimEnd()}\n\n`;
      delete said.dataset.over;
    }
    if (data.restarted) words.textContent = said.before || ""; // what this turn said does not count
    words.append(data.content || "");
    if (data.finished) { said.dataset.over = "yes"; delete said.dataset.growing; }
    keepUp();
  }

  // What the agent asks, with the answers that it suggests; the box below takes any other.
  function ask(data) {
    pause(data.runId); // what is said behind it stands behind it
    const asked = bubble("question", data.question || "A person has to answer.", data.runId);
    if (data.type === "confirmation" && data.decisionId) {
      const link = document.createElement("a");
      link.className = "cty-link";
      link.href = root.dataset.decision.replace("DECISION", encodeURIComponent(data.decisionId));
      link.textContent = "look at it and decide";
      asked.append(link);
    }
    continuityProse(asked.firstChild);
    questions.set(data.runId, asked);
    if (!form || data.type !== "answer") return;
    box.placeholder = "Answer the agent (Enter sends, Shift+Enter breaks the line)";
    if (!data.suggestions?.length) return;
    const choices = document.createElement("div");
    choices.className = "chat-suggestions";
    for (const text of data.suggestions) {
      const choice = document.createElement("button");
      choice.type = "button";
      choice.className = "cty-button";
      choice.textContent = text;
      choice.addEventListener("click", () => choose(choices, data, text));
      choices.append(choice);
    }
    asked.append(choices);
    keepUp();
  }

  async function choose(choices, asked, text) {
    const body = new FormData();
    body.set("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
    body.set("runId", asked.runId);
    body.set("asked", asked.expiresAt);
    body.set("suggestion", text);
    for (const button of choices.children) button.disabled = true;
    try { await post(root.dataset.answer, body); } finally { for (const button of choices.children) button.disabled = false; }
  }

  function settle(runId) { // answered, or over
    questions.get(runId)?.querySelector(".chat-suggestions, a")?.remove();
    questions.delete(runId);
    if (box) box.placeholder = placeholder;
  }

  function message(data) {
    if (data.role === "assistant" && questions.has(data.runId)) return; // the question: it stands there
    if (data.role === "user") settle(data.runId);
    const said = data.role === "assistant" && speaking.get(data.runId);
    if (!said) {
      const told = bubble(data.role, data.content, data.runId);
      if (data.role === "assistant") continuityProse(told.firstChild);
      return;
    }
    delete said.dataset.growing;
    speaking.delete(data.runId);
    // What was said on the way stays; the answer itself is told once.
    const words = said.firstChild, told = words.textContent.trimEnd();
    words.textContent = told.endsWith(data.content.trim()) ? told : `${told}\n\n${data.content}`.trimStart();
    continuityProse(words);
    keepUp();
  }

  function tool(data) {
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
      name.textContent = data.tool;
      line.append(dot, name);
      find("unused")?.remove();
      if (data.args) line.title = JSON.stringify(data.args);
      tools.append(line);
      tools.scrollTop = tools.scrollHeight; // the list alone: the page stays where its reader is
    }
    if (data.errorCode && !line.querySelector(".cty-code")) {
      const code = document.createElement("span");
      code.className = "cty-code";
      code.textContent = data.errorCode;
      line.append(code);
    }
    line.firstChild.dataset.tone = data.phase === "start" ? "running" : data.ok ? "succeeded" : "failed";
  }

  function moved(to, by) {
    status = to;
    holder = by || "";
    const pill = document.createElement("span");
    pill.className = "cty-pill";
    pill.dataset.tone = tones[to] || "neutral";
    pill.textContent = to;
    find("state").replaceChildren(pill);
    show();
  }

  function show() {
    root.dataset.statusNow = status;
    for (const deed of root.querySelectorAll("[data-chat-deed]")) deed.hidden = !deed.dataset.when.split(" ").includes(status);
    find("takeover").hidden = status !== "takeover";
    find("takeover").textContent = `${hasPage()} the page: the agent calls nothing until it is given back, at most 30 minutes.`;
    const busy = find("busy");
    if (busy) busy.hidden = status !== "running";
  }

  function hasPage() {
    if (holder && holder === root.dataset.me) return "You have";
    return `${holder.replace(/^admin:/, "") || "A person"} has`;
  }

  function pause(runId) {
    const said = speaking.get(runId);
    if (said) delete said.dataset.growing;
    speaking.delete(runId);
  }

  function ended(event) {
    settle(event.data.runId);
    pause(event.data.runId);
    const why = event.data.message || event.data.reason || "";
    const what = event.data.errorCode || (event.type === "run.canceled" ? "Canceled" : "Failed");
    bubble("failure", why ? `${what}: ${why}` : what, event.data.runId);
  }

  function take(event) {
    const data = event.data;
    if (event.type === "chatDelta") grow(data);
    else if (event.type === "message") message(data);
    else if (event.type === "toolUsed") tool(data);
    else if (event.type === "statusUpdate" && data.status in tones && !("step" in data)) moved(data.status, data.by);
    else if (event.type === "structuredOutput") bubble("output", JSON.stringify(data.output ?? data.error, null, 2), data.runId);
    else if (event.type === "run.waiting" && data.type !== "takeover") ask(data);
    else if (event.type === "run.resumed") settle(data.runId);
    else if (event.type === "run.started") find("unworked")?.remove();
    else if (event.type === "run.failed" || event.type === "run.canceled") ended(event);
    else if (event.type === "artifact.created" && data.kind === "screenshot") picture(data.artifactId);
  }

  function picture(artifactId) {
    const place = root.dataset.picture.replace("ARTIFACT", encodeURIComponent(artifactId));
    const shot = find("shot");
    shot.href = place;
    shot.querySelector("img").src = place;
    shot.hidden = !root.querySelector("[data-live]").hidden; // one picture: the page as it is now, where it is seen
    find("blank").hidden = true;
  }

  let after = Number(root.dataset.after);
  function listen() {
    const source = new EventSource(`${root.dataset.chat}?after=${after}`);
    source.onopen = () => { find("live").hidden = false; retry = 0; };
    source.onmessage = (said) => {
      const event = JSON.parse(said.data);
      if (event.seq <= after) return;
      after = event.seq;
      take(event);
    };
    source.onerror = () => { // also where the server went away for good: the browser itself gives up then
      find("live").hidden = true;
      if (source.readyState !== EventSource.CLOSED) return;
      source.close();
      retry = Math.min(retry + 1, 10);
      setTimeout(listen, retry * 1000);
    };
  }

  async function post(place, body) {
    const problem = find("problem");
    let why = "";
    try {
      const answer = await fetch(place, { method: "POST", body, headers: { "X-Requested-With": "fetch" } });
      const told = await answer.json().catch(() => ({}));
      if (answer.redirected) why = "You are signed out: open this page anew to sign in.";
      else if (!answer.ok || !told.ok) why = told.message || `The server answered ${answer.status}.`;
    } catch { why = "The server is away: nothing was sent. Try again."; }
    if (problem) {
      problem.hidden = !why;
      problem.textContent = why;
    }
    return !why;
  }

  form?.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (form.querySelector("button").disabled) return; // Enter, twice
    const body = new FormData(form);
    form.dataset.key ||= Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    body.set("key", form.dataset.key); // sent twice, it is said once
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      const sent = await post(form.action, body);
      if (sent && form.dataset.key === body.get("key")) { form.reset(); delete form.dataset.key; } // else somebody types on
    } finally { button.disabled = false; }
  });

  box?.addEventListener("input", () => { delete form.dataset.key; });
  box?.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); form.requestSubmit(); }
  });

  for (const deed of root.querySelectorAll("[data-chat-deed]")) {
    deed.addEventListener("submit", (event) => { event.preventDefault(); post(deed.action, new FormData(deed)); });
  }

  for (const words of log.querySelectorAll("[data-role=assistant] > p")) continuityProse(words);
  log.scrollTop = log.scrollHeight;
  show();
  listen();
})();
