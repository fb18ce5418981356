// The live page of a task: frames of the page over a WebSocket, and during a takeover the user's mouse and keyboard.
// Typed text is sent over the socket to the page and stored nowhere.
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
  let socket = null, size = { width: 1280, height: 720 }, mayAct = false, hadFrame = false, openDialog = null, retry = 0, queue = [], timer = 0, lastMove = null, isPressed = false;

  // --- connection ---------------------------------------------------------------------------------

  async function open() {
    const token = find("csrf").elements.csrfmiddlewaretoken.value;
    let result;
    try {
      const response = await fetch(root.dataset.liveTicket, { method: "POST", headers: { "X-CSRFToken": token, "X-Requested-With": "fetch" } });
      if (!response.ok) return reconnectLater();
      result = await response.json();
    } catch { return reconnectLater(); }
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    socket = new WebSocket(`${scheme}//${location.host}${root.dataset.liveSocket}`);
    socket.onopen = () => { retry = 0; put({ v: 1, type: "auth", ticket: result.ticket }); };
    socket.onmessage = (event) => handle(JSON.parse(event.data));
    socket.onclose = () => { hideLive(""); reconnectLater(); };
  }

  function reconnectLater() {
    retry = Math.min(retry + 1, 10);
    setTimeout(open, retry * 1000);
  }

  function put(frame) {
    if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(frame));
  }

  function handle(frame) {
    if (frame.type === "live_frame") showFrame(frame);
    else if (frame.type === "live_state") showState(frame);
    else if (frame.type === "live_dialog") showDialog(frame.dialog);
    else if (frame.type === "live_tab") offerTab(frame.url);
    else if (frame.type === "live_problem") showProblem(frame.error.message);
    else if (frame.type === "ack" && !frame.ok) showProblem(frame.error.message);
  }

  // --- output --------------------------------------------------------------------------------

  function showFrame(frame) {
    size = { width: frame.width, height: frame.height };
    picture.src = `data:image/jpeg;base64,${frame.data}`;
    box.hidden = false;
    hadFrame = true;
    shot.hidden = true;
    blank.hidden = true;
    find("on").hidden = false;
    find("title").textContent = find("title").dataset.liveName;
    find("absent").hidden = true;
  }

  function showState(frame) {
    if (!frame.page) return hideLive(frame.message || "");
    mayAct = Boolean(frame.mayAct && bar);
    if (bar) bar.hidden = !mayAct;
    find("where").hidden = mayAct;
    find("where").textContent = frame.url;
    if (bar && document.activeElement !== find("url")) find("url").value = frame.url;
    screen.toggleAttribute("data-acts", mayAct);
    if (!mayAct) { showDialog(null); find("tab").hidden = true; showProblem(""); }
  }

  function hideLive(reason) {
    mayAct = false;
    box.hidden = true;
    find("on").hidden = true;
    find("title").textContent = find("title").dataset.lastName;
    screen.removeAttribute("data-acts");
    if (reason) showProblem(""); // the reason explains also why the last input failed
    shot.hidden = !shot.getAttribute("href");
    const absent = find("absent");
    absent.hidden = !reason || !(hadFrame || root.dataset.statusNow === "takeover");
    absent.textContent = shot.hidden ? reason : `${reason} ${gettext("The screenshot shows its last state.")}`;
    blank.hidden = !shot.hidden || !absent.hidden;
  }

  function showDialog(dialog) {
    openDialog = dialog;
    find("dialog").hidden = !dialog || !mayAct;
    if (!dialog) return;
    find("dialog-text").textContent = revealed(dialog.message || gettext("The page asks for a confirmation."));
    find("answer").hidden = dialog.kind !== "prompt";
    find("answer").value = dialog.default || "";
    find("no").hidden = dialog.kind === "alert";
  }

  function offerTab(url) {
    find("tab").hidden = !mayAct || !/^https?:/.test(url);
    find("tab-url").textContent = revealed(url);
  }

  function showProblem(text) {
    find("problem").textContent = text;
    find("problem").hidden = !text;
  }

  // --- input ---------------------------------------------------------------------------------

  function send(event) {
    if (!mayAct) return;
    if (lastMove) { queue.push(lastMove); lastMove = null; }
    queue.push(event);
    flushSoon(0);
  }

  function flushSoon(ms) {
    if (ms === 0) { clearTimeout(timer); timer = 0; flush(); } else timer ||= setTimeout(flush, ms);
  }

  function flush() {
    timer = 0;
    if (lastMove) { queue.push(lastMove); lastMove = null; }
    while (queue.length) put({ v: 1, type: "input", events: queue.splice(0, 64) });
  }

  const modifiers = (event) => (event.altKey ? 1 : 0) | (event.ctrlKey || (isMac && event.metaKey) ? 2 : 0) | (!isMac && event.metaKey ? 4 : 0) | (event.shiftKey ? 8 : 0);

  function position(event) {
    const rect = picture.getBoundingClientRect();
    const x = (event.clientX - rect.left) * size.width / rect.width, y = (event.clientY - rect.top) * size.height / rect.height;
    return { x: Math.round(Math.max(0, Math.min(size.width - 1, x))), y: Math.round(Math.max(0, Math.min(size.height - 1, y))), modifiers: modifiers(event) };
  }

  function mouse(event, action) {
    return { kind: "mouse", action, ...position(event), button: action === "move" ? "none" : BUTTONS[event.button] || "none", buttons: event.buttons & 31, clicks: action === "move" ? 0 : Math.max(1, Math.min(event.detail || 1, 3)) };
  }

  if (bar) {
    screen.addEventListener("mousedown", (event) => { if (mayAct) { event.preventDefault(); keys.focus({ preventScroll: true }); showProblem(""); isPressed = true; send(mouse(event, "down")); } });
    window.addEventListener("mouseup", (event) => { if (isPressed) { isPressed = false; send(mouse(event, "up")); } });
    screen.addEventListener("mousemove", (event) => { if (mayAct) { lastMove = mouse(event, "move"); flushSoon(MOVES_MS); } });
    screen.addEventListener("contextmenu", (event) => { if (mayAct) event.preventDefault(); });
    screen.addEventListener("wheel", (event) => {
      if (!mayAct) return;
      event.preventDefault();
      const step = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? size.height : 1;
      send({ kind: "wheel", ...position(event), deltaX: event.deltaX * step, deltaY: event.deltaY * step });
    }, { passive: false });

    // A hidden field has the focus: it receives the text of input methods and pasted text.
    const isPaste = (event) => (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "v";
    const isNamed = (event) => /^[A-Z][A-Za-z0-9]+$/.test(event.key);
    const isComposed = (event) => event.isComposing || event.keyCode === 229 || ["Process", "Unidentified", "Dead"].includes(event.key) || (!isNamed(event) && [...event.key].length !== 1);
    // On Windows a dead key starts no composition: the text of the next key contains both, and only the field receives it.
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
    const sendText = (text) => { for (let start = 0; start < text.length; start += 5000) send({ kind: "text", text: text.slice(start, start + 5000) }); };
    keys.addEventListener("compositionend", (event) => { if (event.data) sendText(event.data); keys.value = ""; });
    keys.addEventListener("input", (event) => { if (!event.isComposing) { if (!/Composition/.test(event.inputType)) sendText(keys.value); keys.value = ""; } });
    // An on-screen keyboard can send an edit instead of a key press.
    const EDITS = { deleteContentBackward: ["Backspace", 8], deleteContentForward: ["Delete", 46], insertLineBreak: ["Enter", 13], insertParagraph: ["Enter", 13] };
    keys.addEventListener("beforeinput", (event) => {
      if (event.isComposing || !event.cancelable || !EDITS[event.inputType]) return;
      event.preventDefault();
      const [name, keyCode] = EDITS[event.inputType];
      for (const action of ["down", "up"]) send({ kind: "key", action, key: name, code: name, keyCode, modifiers: 0 });
    });
    keys.addEventListener("paste", (event) => { event.preventDefault(); sendText(event.clipboardData.getData("text/plain")); });

    for (const button of root.querySelectorAll("[data-live-go]")) button.addEventListener("click", () => send({ kind: "go", to: button.dataset.liveGo }));
    bar.addEventListener("submit", (event) => {
      event.preventDefault();
      const to = find("url").value.trim();
      showProblem("");
      if (to) send({ kind: "go", to: /^[a-z][a-z0-9+.-]*:/i.test(to) ? to : `https://${to}` });
      find("url").blur();
    });
    find("tab-go").addEventListener("click", () => { send({ kind: "go", to: find("tab-url").textContent }); find("tab").hidden = true; });
    const answer = (accept) => {
      if (!openDialog) return;
      const event = { kind: "dialog", dialog: openDialog.number, accept };
      send(accept && openDialog.kind === "prompt" ? { ...event, text: find("answer").value } : event);
    };
    find("yes").addEventListener("click", () => answer(true));
    find("no").addEventListener("click", () => answer(false));
  }

  open();
})();
