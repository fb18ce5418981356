// What changed on the server, for every open page of this browser: one connection, which the tabs share.
//
// The tab that holds a lock (Web Locks) connects and passes messages on to the others (BroadcastChannel); when it closes,
// another one gets the lock. Without Web Locks, which browsers offer on https and localhost alone, each tab connects itself.
// A message has the rows that changed ("continuity:changed") and what waits for a person: the number in the navigation and
// in the tab's title, and, where the user has turned it on (button[data-notify]), a notification of the browser.
"use strict";

(() => {
  const STREAM = "/admin/changes/";
  const NAME = "continuity-changes"; // of the lock and of the channel
  const WANTED = "continuity.notify"; // localStorage: "on"
  const SEEN = "continuity.notified"; // localStorage: keys of what was notified
  const MAX_SEEN = 200;
  const RECENT_MS = 5000; // a new tab gets the changes of this time: its page may be as old
  const FIRST_RETRY_MS = 2000;
  const LAST_RETRY_MS = 60000;

  const channel = "BroadcastChannel" in window ? new BroadcastChannel(NAME) : null;
  let source = null;
  let retryMs = FIRST_RETRY_MS;
  let isLeader = false;
  let lastWaiting = null;
  let recent = []; // { at, changed }
  let baseTitle = null;

  const emit = (name, detail) => document.dispatchEvent(new CustomEvent(`continuity:${name}`, { detail }));

  function receive(message) {
    if (message.type === "hello") {
      if (isLeader) tellNewTab();
    } else if (message.type === "state") {
      document.documentElement.dataset.stream = message.isOpen ? "open" : "closed";
      emit("stream", message);
    } else {
      if (message.waiting) showWaiting(message.waiting);
      if (message.changed) emit("changed", message.changed);
    }
  }

  function publish(message) {
    receive(message);
    channel?.postMessage(message);
  }

  function tellNewTab() {
    channel.postMessage({ type: "state", isOpen: source?.readyState === EventSource.OPEN });
    if (lastWaiting) channel.postMessage({ waiting: lastWaiting });
    for (const { at, changed } of recent) if (Date.now() - at < RECENT_MS) channel.postMessage({ changed });
  }

  function connect() {
    isLeader = true;
    source = new EventSource(STREAM);
    source.onopen = () => {
      retryMs = FIRST_RETRY_MS;
      publish({ type: "state", isOpen: true });
    };
    source.onmessage = (event) => {
      const message = JSON.parse(event.data);
      publish(message);
      recent = recent.filter(({ at }) => Date.now() - at < RECENT_MS);
      if (message.changed) recent.push({ at: Date.now(), changed: message.changed });
      if (message.waiting) notify(message.waiting.rows);
    };
    source.onerror = () => {
      publish({ type: "state", isOpen: false });
      if (source.readyState !== EventSource.CLOSED) return; // the browser connects again by itself
      setTimeout(connect, retryMs); // it does not after an answer that is no stream, such as the sign-in page
      retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
    };
  }

  // --- what waits for a person ------------------------------------------------------------------

  function showWaiting(waiting) {
    lastWaiting = waiting;
    for (const badge of document.querySelectorAll("[data-waiting]")) {
      badge.textContent = waiting.count;
      badge.hidden = waiting.count === 0;
    }
    showTitle(waiting.count);
  }

  function showTitle(count) {
    baseTitle ??= document.title.trim();
    document.title = count ? `(${count}) ${baseTitle}` : baseTitle;
  }

  // --- notifications of the browser -------------------------------------------------------------

  function stored(name) {
    try { return localStorage.getItem(name); } catch { return null; } // storage may be turned off
  }

  function notify(rows) {
    const seen = JSON.parse(stored(SEEN) ?? "[]");
    const fresh = rows.filter((row) => !seen.includes(row.key));
    if (!fresh.length) return;
    if (isOn()) fresh.slice(0, 3).forEach(showNotification);
    localStorage.setItem(SEEN, JSON.stringify([...seen, ...fresh.map((row) => row.key)].slice(-MAX_SEEN)));
  }

  function showNotification(row) {
    const text = document.querySelector("[data-notify]")?.dataset.notifyTitle ?? "Continuity: a person is needed";
    const shown = new Notification(text, { body: row.title, tag: row.key, icon: "/static/continuity/mark.svg" });
    shown.onclick = () => {
      window.focus();
      location.href = row.url;
      shown.close();
    };
  }

  const isOn = () => "Notification" in window && Notification.permission === "granted" && stored(WANTED) === "on";

  function showButtons() {
    for (const button of document.querySelectorAll("[data-notify]")) {
      const isOffered = "Notification" in window && window.isSecureContext;
      const state = !isOffered ? "none" : Notification.permission === "denied" ? "blocked" : isOn() ? "on" : "off";
      button.dataset.state = state;
      button.setAttribute("aria-pressed", String(state === "on"));
      button.querySelector("[data-label]").textContent = button.dataset[state];
      button.disabled = state === "none" || state === "blocked";
      button.hidden = false;
    }
  }

  document.addEventListener("click", async (event) => {
    if (!event.target.closest("[data-notify]")) return;
    const turnsOn = !isOn();
    if (turnsOn) await Notification.requestPermission();
    localStorage.setItem(WANTED, turnsOn && Notification.permission === "granted" ? "on" : "off");
    showButtons();
  });

  // --- start ------------------------------------------------------------------------------------

  document.addEventListener("DOMContentLoaded", () => {
    if (!document.getElementById("nav-sidebar-apps")) return; // signed out
    const badge = document.querySelector("[data-waiting]");
    if (badge) showTitle(Number(badge.textContent));
    showButtons();
    if (channel) {
      channel.onmessage = (event) => receive(event.data);
      channel.postMessage({ type: "hello" });
    }
    if (channel && navigator.locks) {
      navigator.locks.request(NAME, () => { // held until this tab closes
        connect();
        return new Promise(() => {});
      });
    } else {
      connect();
    }
    window.addEventListener("pagehide", () => source?.close());
    window.addEventListener("pageshow", (event) => event.persisted && isLeader && connect());
  });
})();
