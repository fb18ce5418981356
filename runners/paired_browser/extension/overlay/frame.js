// Connects one frame of a task's tab with the service worker. Loaded after input_watch.js and, in the top frame too,
// overlay.js. In a tab that no task uses the service worker ends the connection, and the frame does nothing.
(() => {
  if (globalThis.continuityFrame) {
    globalThis.continuityFrame.connect(); // the tab has become a task's
    return;
  }

  const FRAMES = 2;
  const LONGEST_FRAME_MS = 100; // a page that is not shown draws no frames

  // Resolve when the events that the browser holds back until the next frame were dispatched: wheel and movements.
  const nextFrames = () => {
    let left = FRAMES;
    const drawn = new Promise((resolve) => {
      const next = () => ((left -= 1) < 0 ? resolve() : requestAnimationFrame(next));
      next();
    });
    return Promise.race([drawn, new Promise((resolve) => setTimeout(resolve, LONGEST_FRAME_MS))]);
  };

  // Whether this runs before the scripts of the document. A document that is not loaded from a server was made by one of another,
  // in which this was first.
  const isFirst = !location.protocol.startsWith("http") || (document.readyState === "loading" && !document.documentElement?.firstChild);

  class Frame {
    constructor() {
      this.port = null;
      const isOwn = (event) => Boolean(this.overlay?.host) && event.target === this.overlay.host;
      this.watch = new globalThis.ContinuityInputWatch({ report: (event) => this.send({ type: "input", ...event }), isOwn });
      this.overlay = window === window.top ? this.newOverlay() : null;
      // Called by generated/act.js with whether a press hit its element, before the page can navigate because of it; null: no press.
      globalThis.continuityReport = (isHit) => isHit !== null && this.send({ type: "pressed", isHit });
      this.isLossKnown = false;
      this.observer = new MutationObserver(() => this.restore());
      window.addEventListener("pageshow", (event) => event.persisted && this.connect()); // kept pages lose their connection
    }

    newOverlay() {
      return new globalThis.ContinuityOverlay({ isLate: !isFirst, onPress: (name) => this.press(name), onLost: () => this.reportLoss() });
    }

    press(name) {
      if (name === "reload") location.reload();
      else this.send({ type: name });
    }

    // A person who has the page since then knows it, and may let the task go on.
    reportLoss() {
      this.isLossKnown ||= this.overlay.state.state === "takeover";
      this.send({ type: "overlayLost", isKnown: this.isLossKnown });
    }

    connect() {
      if (this.port || !chrome.runtime?.id) return;
      this.port = chrome.runtime.connect({ name: isFirst ? "overlay" : "overlay late" });
      this.port.onMessage.addListener((message) => this.receive(message));
      this.port.onDisconnect.addListener(() => this.disconnected());
      this.isNew = true; // nothing was received from this service worker
    }

    send(message) {
      try {
        this.port?.postMessage(message);
      } catch {
        this.disconnected(); // the extension was reloaded or removed
      }
    }

    async receive(message) {
      if (message.type === "state") {
        this.show(message);
        return;
      }
      if (message.type === "withhold") globalThis.continuityWithholds = message.isWithheld;
      else if (message.type === "conceal") this.overlay?.conceal();
      else if (message.type === "reveal") this.overlay?.reveal();
      else if (message.type === "flush") await nextFrames();
      if (message.question) this.send({ type: "answer", question: message.question });
    }

    show(message) {
      this.isTask = message.state !== "idle";
      if (this.isTask && message.taskId !== this.taskId) this.beginTask(message.taskId);
      this.watch.set(message.watch);
      globalThis.continuityWithholds = Boolean(message.isWithheld); // generated/frame_input.js
      this.overlay?.show(message);
      this.observer.disconnect();
      if (this.isTask) this.observe();
      this.overlay?.restore();
      if (this.overlay?.isLost) this.rememberLoss(message);
      this.isNew = false;
    }

    beginTask(taskId) {
      this.taskId = taskId;
      this.isLossKnown = false;
      this.overlay?.startAnew();
    }

    rememberLoss({ state }) {
      if (state === "takeover") this.isLossKnown = true;
      const isUnseen = !this.isLossKnown && ["hidden", "ongoing"].includes(state); // lost while the task waited
      if (this.isTask && (this.isNew || isUnseen)) this.reportLoss();
    }

    observe() {
      this.observer.observe(document, { childList: true });
      if (document.documentElement && this.overlay) this.observer.observe(document.documentElement, { childList: true });
    }

    // `document.open` removes the listeners and the content of the document.
    restore() {
      if (!this.isTask) return;
      this.watch.listen();
      this.observer.disconnect();
      this.observe(); // first, because the page may remove it again while it is put back
      this.overlay?.restore();
    }

    // The service worker stopped: connecting starts it again. One that dismisses the frame has told it before.
    disconnected() {
      this.port = null;
      const { isTask } = this;
      this.isTask = false;
      if (isTask && chrome.runtime?.id) this.connect();
      else this.show({ state: "idle", watch: "off", isWithheld: false });
    }
  }

  globalThis.continuityFrame = new Frame();
  globalThis.continuityFrame.connect();
})();
