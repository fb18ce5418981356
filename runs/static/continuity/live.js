// The live page of a task: pictures of it as it changes, and while a person has it, their mouse and keyboard.
// What is typed goes over the socket to the page, and is kept nowhere.
"use strict";

(() => {
  const root = document.querySelector("[data-live-socket]");
  if (!root) return;
  const find = (name) => root.querySelector(`[data-live-${name}]`);
  const box = root.querySelector("[data-live]"), screen = find("screen"), picture = find("picture"), keys = find("keys"), bar = find("bar");
  const shot = root.querySelector("[data-chat-shot]"), blank = root.querySelector("[data-chat-blank]");
  const MOVES_MS = 40;
  const BUTTONS = ["left", "middle", "right", "back", "forward"];
  const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
  let socket = null, size = { width: 1280, height: 720 }, mayAct = false, wasSeen = false, asked = null, retry = 0, queue = [], timer = 0, moved = null, isPressed = false;

  // --- the line ---------------------------------------------------------------------------------

  async function open() {
    const token = find("csrf").elements.csrfmiddlewaretoken.value;
    let told;
    try {
      const answer = await fetch(root.dataset.liveTicket, { method: "POST", headers: { "X-CSRFToken": token, "X-Requested-With": "fetch" } });
      if (!answer.ok) return later();
      told = await answer.json();
    } catch { return later(); }
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    socket = new WebSocket(`${scheme}//${location.host}${root.dataset.liveSocket}`);
    socket.onopen = () => { retry = 0; put({ v: 1, type: "auth", ticket: told.ticket }); };
    socket.onmessage = (event) => take(JSON.parse(event.data));
    socket.onclose = () => { gone(""); later(); };
  }

  function later() {
    retry = Math.min(retry + 1, 10);
    setTimeout(open, retry * 1000);
  }

  function put(frame) {
    if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(frame));
  }

  function take(frame) {
    if (frame.type === "live_frame") show(frame);
    else if (frame.type === "live_state") state(frame);
    else if (frame.type === "live_dialog") dialog(frame.dialog);
    else if (frame.type === "live_tab") wanted(frame.url);
    else if (frame.type === "live_problem") problem(frame.error.message);
    else if (frame.type === "ack" && !frame.ok) problem(frame.error.message);
  }

  // --- what is seen -----------------------------------------------------------------------------

  function show(frame) {
    size = { width: frame.width, height: frame.height };
    picture.src = `data:image/jpeg;base64,${frame.data}`;
    box.hidden = false;
    wasSeen = true;
    shot.hidden = true;
    blank.hidden = true;
    find("on").hidden = false;
    find("absent").hidden = true;
  }

  function state(told) {
    if (!told.page) return gone(told.message || "");
    mayAct = Boolean(told.mayAct && bar);
    if (bar) bar.hidden = !mayAct;
    find("where").hidden = mayAct;
    find("where").textContent = told.url;
    if (bar && document.activeElement !== find("url")) find("url").value = told.url;
    screen.toggleAttribute("data-acts", mayAct);
    if (!mayAct) { dialog(null); find("tab").hidden = true; problem(""); }
  }

  function gone(why) {
    mayAct = false;
    box.hidden = true;
    find("on").hidden = true;
    screen.removeAttribute("data-acts");
    if (why) problem(""); // that a click came too late is told by why
    shot.hidden = !shot.getAttribute("href");
    const absent = find("absent");
    absent.hidden = !why || !(wasSeen || root.dataset.statusNow === "takeover");
    absent.textContent = shot.hidden ? why : `${why} The picture shows how it looked last.`;
    blank.hidden = !shot.hidden || !absent.hidden;
  }

  function dialog(told) {
    asked = told;
    find("dialog").hidden = !told || !mayAct;
    if (!told) return;
    find("asked").textContent = told.message || "The page asks for a yes or no.";
    find("answer").hidden = told.kind !== "prompt";
    find("answer").value = told.default || "";
    find("no").hidden = told.kind === "alert";
  }

  function wanted(url) {
    find("tab").hidden = !mayAct || !/^https?:/.test(url);
    find("tab-url").textContent = url;
  }

  function problem(text) {
    find("problem").textContent = text;
    find("problem").hidden = !text;
  }

  // --- what is done -----------------------------------------------------------------------------

  function send(event) {
    if (!mayAct) return;
    if (moved) { queue.push(moved); moved = null; }
    queue.push(event);
    flushSoon(0);
  }

  function flushSoon(ms) {
    if (ms === 0) { clearTimeout(timer); timer = 0; flush(); } else timer ||= setTimeout(flush, ms);
  }

  function flush() {
    timer = 0;
    if (moved) { queue.push(moved); moved = null; }
    while (queue.length) put({ v: 1, type: "input", events: queue.splice(0, 64) });
  }

  const modifiers = (event) => (event.altKey ? 1 : 0) | (event.ctrlKey || (isMac && event.metaKey) ? 2 : 0) | (!isMac && event.metaKey ? 4 : 0) | (event.shiftKey ? 8 : 0);

  function place(event) {
    const at = picture.getBoundingClientRect();
    const x = (event.clientX - at.left) * size.width / at.width, y = (event.clientY - at.top) * size.height / at.height;
    return { x: Math.round(Math.max(0, Math.min(size.width - 1, x))), y: Math.round(Math.max(0, Math.min(size.height - 1, y))), modifiers: modifiers(event) };
  }

  function mouse(event, action) {
    return { kind: "mouse", action, ...place(event), button: action === "move" ? "none" : BUTTONS[event.button] || "none", buttons: event.buttons & 31, clicks: action === "move" ? 0 : Math.max(1, Math.min(event.detail || 1, 3)) };
  }

  if (bar) {
    screen.addEventListener("mousedown", (event) => { if (mayAct) { event.preventDefault(); keys.focus({ preventScroll: true }); problem(""); isPressed = true; send(mouse(event, "down")); } });
    window.addEventListener("mouseup", (event) => { if (isPressed) { isPressed = false; send(mouse(event, "up")); } });
    screen.addEventListener("mousemove", (event) => { if (mayAct) { moved = mouse(event, "move"); flushSoon(MOVES_MS); } });
    screen.addEventListener("contextmenu", (event) => { if (mayAct) event.preventDefault(); });
    screen.addEventListener("wheel", (event) => {
      if (!mayAct) return;
      event.preventDefault();
      const step = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? size.height : 1;
      send({ kind: "wheel", ...place(event), deltaX: event.deltaX * step, deltaY: event.deltaY * step });
    }, { passive: false });

    // A hidden field has the keyboard: it composes what input methods write, and takes what is pasted.
    const isPaste = (event) => (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "v";
    const isNamed = (event) => /^[A-Z][A-Za-z0-9]+$/.test(event.key);
    const isComposed = (event) => event.isComposing || event.keyCode === 229 || ["Process", "Unidentified", "Dead"].includes(event.key) || (!isNamed(event) && [...event.key].length !== 1);
    // On Windows a dead key begins no composition: the next key's text is of both, and only the field gets it.
    let isAfterDead = false;
    const completesDead = (event) => {
      const completes = isAfterDead && !isNamed(event) && !event.ctrlKey && !event.metaKey;
      if (!["Shift", "Control", "Alt", "AltGraph", "Meta", "CapsLock"].includes(event.key)) isAfterDead = event.key === "Dead";
      return completes;
    };
    const key = (event, action) => {
      if (!mayAct || (action === "down" && completesDead(event)) || isComposed(event) || isPaste(event)) return;
      event.preventDefault();
      send({ kind: "key", action, key: event.key, code: event.code, keyCode: Math.min(event.keyCode, 255), modifiers: modifiers(event), repeat: event.repeat });
    };
    keys.addEventListener("keydown", (event) => key(event, "down"));
    keys.addEventListener("keyup", (event) => key(event, "up"));
    const text = (written) => { for (let at = 0; at < written.length; at += 5000) send({ kind: "text", text: written.slice(at, at + 5000) }); };
    keys.addEventListener("compositionend", (event) => { if (event.data) text(event.data); keys.value = ""; });
    keys.addEventListener("input", (event) => { if (!event.isComposing) { if (!/Composition/.test(event.inputType)) text(keys.value); keys.value = ""; } });
    // A soft keyboard may send an edit where others press a key.
    const EDITS = { deleteContentBackward: ["Backspace", 8], deleteContentForward: ["Delete", 46], insertLineBreak: ["Enter", 13], insertParagraph: ["Enter", 13] };
    keys.addEventListener("beforeinput", (event) => {
      if (event.isComposing || !event.cancelable || !EDITS[event.inputType]) return;
      event.preventDefault();
      const [name, keyCode] = EDITS[event.inputType];
      for (const action of ["down", "up"]) send({ kind: "key", action, key: name, code: name, keyCode, modifiers: 0 });
    });
    keys.addEventListener("paste", (event) => { event.preventDefault(); text(event.clipboardData.getData("text/plain")); });

    for (const button of root.querySelectorAll("[data-live-go]")) button.addEventListener("click", () => send({ kind: "go", to: button.dataset.liveGo }));
    bar.addEventListener("submit", (event) => {
      event.preventDefault();
      const to = find("url").value.trim();
      problem("");
      if (to) send({ kind: "go", to: /^[a-z][a-z0-9+.-]*:/i.test(to) ? to : `https://${to}` });
      find("url").blur();
    });
    find("tab-go").addEventListener("click", () => { send({ kind: "go", to: find("tab-url").textContent }); find("tab").hidden = true; });
    const answer = (accept) => {
      if (!asked) return;
      const told = { kind: "dialog", dialog: asked.number, accept };
      send(accept && asked.kind === "prompt" ? { ...told, text: find("answer").value } : told);
    };
    find("yes").addEventListener("click", () => answer(true));
    find("no").addEventListener("click", () => answer(false));
  }

  open();
})();
