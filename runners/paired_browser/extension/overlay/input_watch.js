// Reports the trusted input events of one frame, before the page receives them. Whether an event is a person's or one
// that the extension sent, the service worker decides (expected_input.js).
(() => {
  const MODIFIER_KEYS = new Set(["Alt", "AltGraph", "CapsLock", "Control", "Fn", "Meta", "NumLock", "ScrollLock", "Shift"]);
  const TEXTS = new Set(["insertFromPaste", "insertFromDrop", "insertFromComposition", "insertReplacementText"]);

  // A point of a frame's document in the document around it; frames may be scaled.
  const outOf = (frame, { x, y }) => {
    const box = frame.getBoundingClientRect();
    const { paddingLeft, paddingTop } = frame.ownerDocument.defaultView.getComputedStyle(frame);
    const across = frame.offsetWidth ? box.width / frame.offsetWidth : 1;
    const down = frame.offsetHeight ? box.height / frame.offsetHeight : 1;
    return {
      x: box.x + (frame.clientLeft + parseFloat(paddingLeft) + x) * across,
      y: box.y + (frame.clientTop + parseFloat(paddingTop) + y) * down,
    };
  };

  // Where an event is in its tab, in CSS pixels; nothing if a frame around it is of another site.
  const place = (event) => {
    let point = { x: event.clientX, y: event.clientY };
    for (let view = window; view !== view.top; view = view.parent) {
      let frame = null;
      try {
        frame = view.frameElement;
      } catch {
        return {};
      }
      if (!frame) return {};
      point = outOf(frame, point);
    }
    return point;
  };

  const descriptions = {
    pointerdown: (event) => ({ kind: "press", button: event.button, ...place(event) }),
    pointermove: (event) => {
      if (event.pointerType !== "mouse") return null; // the touch began with pointerdown
      return { kind: "move", screenX: event.screenX, screenY: event.screenY, ...place(event) };
    },
    wheel: (event) => ({ kind: "wheel", ...place(event) }),
    // A modifier key alone does nothing on the page: it begins a shortcut of the browser or of the desktop.
    keydown: (event) => (MODIFIER_KEYS.has(event.key) ? null : { kind: "key", key: event.key, code: event.code }),
    input: (event) => (TEXTS.has(event.inputType) ? { kind: "text" } : null),
    pointerout: (event) => (window === window.top && event.relatedTarget === null && event.pointerType === "mouse" ? { kind: "left" } : null),
  };

  const MAX_EARLY = 50;

  // Calls `report` with each event. `isOwn(event)` is whether an event is on the overlay's own buttons.
  //
  // It listens from the beginning of the document, and always: a page whose listeners were there first could hide a person's
  // input from it.
  class InputWatch {
    constructor({ report, isOwn = () => false }) {
      this.report = report;
      this.isOwn = isOwn;
      this.mode = "early"; // the service worker has not yet answered whether to report
      this.early = [];
      this.listener = (event) => this.receive(event);
      this.listen();
    }

    // "off": report nothing; "watching": report every event; "counting": a person has the page, report what is counted.
    set(mode) {
      const { early } = this;
      Object.assign(this, { mode, early: [] });
      for (const described of early) this.tell(described);
    }

    // Listen (again: `document.open` removes the listeners of the window). Listening twice is the same as once.
    listen() {
      for (const type of Object.keys(descriptions)) {
        window.addEventListener(type, this.listener, { capture: true, passive: true });
      }
    }

    receive(event) {
      if (this.mode === "off" || !event.isTrusted || this.isOwn(event)) return;
      const described = descriptions[event.type](event);
      if (described) this.tell(described);
    }

    tell(described) {
      if (this.mode === "early") this.early = [...this.early, described].slice(-MAX_EARLY);
      else if (this.mode === "watching") this.report(described);
      else if (this.mode === "counting" && !["move", "left"].includes(described.kind)) {
        const { key: _key, code: _code, ...counted } = described;
        this.report(counted);
      }
    }
  }

  globalThis.ContinuityInputWatch = InputWatch;
})();
