// Draws the state of a task over its page: in a closed shadow root in the top layer, with a style sheet of its own, so that
// neither the page's styles, its dialogs nor its content security policy change it. It takes no pointer input but on its
// buttons, which are shown only while a person has the page.
(() => {
  const XHTML = "http://www.w3.org/1999/xhtml";
  const TAG = "continuity-overlay";
  // A page that removes it again and again is not fought without end: that would stop the page.
  const MAX_RESTORES = 20;
  const RESTORES_MS = 10_000;
  const STYLE = `
    :host {
      all: initial !important; position: fixed !important; inset: 0 !important; z-index: 2147483647 !important; display: block !important;
      width: 100% !important; height: 100% !important; max-width: none !important; max-height: none !important; overflow: hidden !important;
      pointer-events: none !important; color-scheme: light dark !important;
    }
    :host { --accent: #4f46e5; --ink: #16181d; --quiet: #565c69; --ground: #fff; --line: #d9dce3; }
    @media (prefers-color-scheme: dark) {
      :host { --accent: #9a94fa; --ink: #f2f3f7; --quiet: #b3b9c6; --ground: #1d2027; --line: #3a3f4b; }
    }
    * { box-sizing: border-box; margin: 0; font: 14px/1.45 system-ui, -apple-system, "Segoe UI", sans-serif; letter-spacing: normal; }
    [hidden] { display: none !important; }
    .frame { position: absolute; inset: 0; border: 3px solid var(--accent); opacity: .85; animation: breathe 2.4s ease-in-out infinite; }
    .takeover .frame { border-style: dashed; animation: none; }
    .waiting .frame, .hidden .frame { display: none; }
    .panel { position: absolute; left: 50%; bottom: 24px; transform: translateX(-50%); display: flex; flex-wrap: wrap; align-items: center;
      gap: 10px 16px; width: max-content; max-width: min(640px, calc(100% - 24px)); padding: 12px 16px; border: 1px solid var(--line);
      border-radius: 14px; color: var(--ink); background: var(--ground); box-shadow: 0 6px 24px rgb(0 0 0 / .28); }
    .top .panel { bottom: auto; top: 24px; }
    .takeover .panel, .waiting .panel, .late .panel { pointer-events: auto; }
    .takeover.busy .panel { pointer-events: none; }
    .dot { flex: none; width: 10px; height: 10px; border-radius: 50%; background: var(--accent); animation: breathe 1.2s ease-in-out infinite; }
    .takeover .dot, .waiting .dot { border-radius: 2px; animation: none; }
    .texts { flex: 1 1 200px; min-width: 0; }
    .heading { font-weight: 600; overflow-wrap: anywhere; display: -webkit-box; -webkit-line-clamp: 2; -webkit-box-orient: vertical; overflow: hidden; }
    .hint { color: var(--quiet); font-size: 13px; overflow-wrap: anywhere; white-space: pre-line; }
    .problem { color: light-dark(#b3261e, #ff9a92); font-size: 13px; }
    .buttons { display: flex; flex-wrap: wrap; gap: 8px; }
    button { appearance: none; min-height: 36px; padding: 0 14px; border: 1px solid var(--line); border-radius: 9px; color: var(--ink);
      background: transparent; font-weight: 600; white-space: nowrap; cursor: pointer; }
    button:hover { border-color: var(--quiet); }
    button.resume, .late:not(.takeover) button.reload { border-color: transparent; color: light-dark(#fff, #16181d); background: var(--accent); }
    button.move { padding: 0 10px; }
    button:disabled { opacity: .5; cursor: default; }
    button:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
    @keyframes breathe { 50% { opacity: .4; } }
    @media (prefers-reduced-motion: reduce) { .frame, .dot { animation: none; } }
    @media (max-width: 480px) { .panel { bottom: 12px; width: calc(100% - 24px); } .top .panel { top: 12px; } .takeover .buttons { width: 100%; } .resume, .stop { flex: 1; } .late .buttons { gap: 6px; } .late button { padding: 0 10px; } }
    @media (forced-colors: active) { .frame { border-color: Highlight; } .dot { background: Highlight; forced-color-adjust: none; } }
  `;

  const element = (tag, className, attributes = {}) => {
    const made = document.createElementNS(XHTML, tag);
    made.className = className;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };

  // `onPress("resume" | "stop" | "reload")` is called when a person presses a button; `onLost()` once, when the page has removed the
  // overlay too often: from then on this document is without it.
  class Overlay {
    //
    // `isLate`: the page was there first. Whatever the state, it asks the person to reload the page.
    constructor({ onPress, onLost, isLate = false, text = (key, ...values) => chrome.i18n.getMessage(key, values) }) {
      Object.assign(this, { onPress, onLost, isLate, text });
      this.state = { state: "idle" };
      this.isConcealed = this.isLost = false;
      this.restored = []; // when it was put back
      this.host = null;
    }

    // Show a state: "idle" (nothing in the page), "hidden" (nothing to see), "waiting" (for an approval or an answer),
    // "ongoing" or "takeover".
    show(state) {
      const isNew = state.state !== this.state.state;
      this.state = state;
      if (state.state === "idle") this.remove();
      else if (isNew && !this.isConcealed) this.place();
      if (this.host) this.render();
    }

    // Take the overlay out of the page, for a picture or a reading of it, until `reveal`.
    conceal() {
      this.isConcealed = true;
      this.host?.remove();
    }

    reveal() {
      this.isConcealed = false;
      if (this.state.state === "idle") return;
      this.place();
      if (this.host) this.render();
    }

    // Put the overlay back that the page removed or moved, or whose document it wrote anew. The page may remove it at once.
    restore() {
      const isShown = () => !this.isConcealed && !this.isLost && this.state.state !== "idle" && document.documentElement !== null;
      while (isShown() && !this.isInPlace()) this.putBack();
    }

    putBack() {
      const now = performance.now();
      this.restored = [...this.restored.filter((at) => now - at < RESTORES_MS), now];
      if (this.restored.length <= MAX_RESTORES) {
        this.place();
        return;
      }
      this.isLost = true;
      this.remove();
      this.onLost();
    }

    // Show it in this document for another task, whatever the page did before.
    startAnew() {
      this.isLost = false;
      this.restored = [];
    }

    isInPlace() {
      return Boolean(this.host) && this.host.parentNode === document.documentElement;
    }

    remove() {
      this.host?.remove();
      this.host = null;
    }

    place() {
      if (this.isLost) return;
      if (!this.host) this.build();
      if (!document.documentElement) return; // the document is being written; `restore` comes later
      if (!this.isInPlace()) document.documentElement.append(this.host);
      this.raise();
    }

    // Dialogs that the page opened later are above it until it is shown again.
    raise() {
      if (!this.host.isConnected || !this.host.showPopover) return;
      try {
        if (this.host.matches(":popover-open")) this.host.hidePopover();
        this.host.showPopover();
      } catch {
        // A listener of the page has removed it meanwhile: `restore` puts it back.
      }
    }

    build() {
      this.host = element(TAG, "");
      if ("popover" in this.host) this.host.popover = "manual";
      const root = this.host.attachShadow({ mode: "closed" });
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(STYLE);
      root.adoptedStyleSheets = [sheet];
      root.append(this.buildBody());
    }

    buildBody() {
      this.body = element("div", "", { lang: this.text("@@ui_locale").replace("_", "-") });
      this.heading = element("p", "heading");
      this.hint = element("p", "hint");
      this.problem = element("p", "problem", { role: "alert" });
      this.buttons = Object.fromEntries(["reload", "resume", "stop", "move"].map((name) => [name, this.button(name)]));
      const panel = element("section", "panel", { "aria-label": "Continuity" });
      const texts = element("div", "texts", { role: "status" });
      const row = element("div", "buttons");
      texts.append(this.heading, this.hint, this.problem);
      row.append(...Object.values(this.buttons));
      panel.append(element("span", "dot", { "aria-hidden": "true" }), texts, row);
      this.row = row;
      this.body.append(element("div", "frame", { "aria-hidden": "true" }), panel);
      return this.body;
    }

    button(name) {
      const button = element("button", name, { type: "button" });
      button.textContent = this.text(name === "move" ? "overlayMove" : name);
      if (name === "move") {
        button.textContent = "⇅";
        button.setAttribute("aria-label", this.text("overlayMove"));
        button.title = this.text("overlayMove");
      }
      button.addEventListener("click", (event) => {
        if (!event.isTrusted) return;
        if (name === "move") this.body.classList.toggle("top");
        else this.onPress(name);
      });
      return button;
    }

    render() {
      const { state, isBusy, problem, waits } = this.state;
      const place = this.body.classList.contains("top") ? " top" : "";
      this.body.className = `${state}${isBusy ? " busy" : ""}${this.isLate ? " late" : ""}${place}`;
      this.body.hidden = state === "hidden" && !this.isLate;
      this.row.hidden = !["waiting", "takeover"].includes(state) && !this.isLate;
      this.buttons.reload.hidden = !this.isLate;
      [this.heading.textContent, this.hint.textContent] = this.texts();
      this.problem.textContent = problem ?? "";
      this.problem.hidden = !problem;
      for (const name of ["resume", "stop"]) {
        this.buttons[name].disabled = Boolean(isBusy || waits);
        this.buttons[name].hidden = state !== "takeover";
      }
    }

    // The heading and the line below it.
    texts() {
      const [heading, hint] = this.textsOfState();
      if (!this.isLate) return [heading, hint];
      const lines = this.state.state === "waiting" ? [hint, this.text("lateHint")] : [this.text("lateHint")];
      return [heading, lines.filter(Boolean).join("\n")];
    }

    textsOfState() {
      const { state, title, isBusy, wait } = this.state;
      if (state === "takeover") return [this.text("takeoverHeading"), this.text(isBusy ? "takeoverBusy" : "takeoverHint")];
      if (state === "waiting") return [wait?.heading ?? "", [wait?.subject, wait?.hint].filter(Boolean).join(" · ")];
      return [title ? this.text("ongoingHeading", title) : this.text("ongoingUntitled"), this.text("ongoingHint")];
    }
  }

  globalThis.ContinuityOverlay = Overlay;
})();
