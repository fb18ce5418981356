// Real input by the debugger: Input.dispatchMouseEvent, Input.dispatchKeyEvent and Input.dispatchDragEvent.
//
// Each method throws NotDispatched if nothing was sent by any of them; CDP_UNAVAILABLE with details.effect unknown, or
// TASK_TAB_CLOSED, if something may have been. `isCurrent` says whether the tab still shows the document of the element; so do
// a PagePress and PageKeys (press.js).
import { sleep } from "../clock.js";
import { cdpLost, NavigatedAway, NotDispatched, PressMissed } from "../failures.js";
import { keyboard, keyOf } from "./keys.js";

const [MOUSE, KEY, DRAG] = ["Mouse", "Key", "Drag"].map((kind) => `Input.dispatch${kind}Event`);
const INSERT = "Input.insertText";
const NO_OP = ["Input.setIgnoreInputEvents", { ignore: false }]; // its reply shows that the debugger works
const BURST = 6; // keys between two document checks; the first key is sent alone
const MAX_TYPED_LENGTH = 200; // a longer text, or one with several lines, is inserted at once
export const OUTSIDE = [-1, -1]; // a point of no page
const CLOSING_MS = 300; // between the end of a session and the event that its tab closed

export const connectionLost = () => cdpLost("The connection to the page broke during the input.", { effect: "unknown" });
export const isTyped = (text) => text.length <= MAX_TYPED_LENGTH && !/[\n\r]/.test(text);

const left = (x, y) => ({ x, y, button: "left", clickCount: 1 });
const keyMessages = (key) => {
  const { text, ...released } = key;
  return [[KEY, { type: text === undefined ? "rawKeyDown" : "keyDown", ...key }], [KEY, { type: "keyUp", ...released }]];
};

// The messages of a text: keys for the characters that a keyboard has, the others as an input method commits them.
function typedMessages(text) {
  const found = [];
  let others = "";
  const commit = () => {
    if (others) found.push([[INSERT, { text: others }]]);
    others = "";
  };
  for (const character of text) {
    if (keyboard.has(character)) {
      commit();
      found.push(keyMessages(keyboard.get(character)));
    } else others += character;
  }
  commit();
  return found;
}

// The messages of a text in groups; a space, which can click a button, starts one.
export function bursts(text) {
  const groups = [];
  let burst = [];
  for (const [index, messages] of typedMessages(text).entries()) {
    if (burst.length && (index === 1 || burst.length >= 2 * BURST || messages[0][1].text === " ")) {
      groups.push(burst);
      burst = [];
    }
    burst.push(...messages);
  }
  return [...groups, burst];
}

export class CdpInput {
  // `isOver()`: the action has ended, and sends nothing any more.
  constructor(tab, cdp, isOver = () => false) {
    Object.assign(this, { tab, cdp, isOver });
    this.hasStarted = false;
  }

  // Click at the point of a PagePress.
  async click(press) {
    await this.press(press);
    await this.releaseButton(press.x, press.y);
  }

  // Move the mouse to the point, and press its left button on the intended element. Throws PressMissed if the element has not
  // received it.
  //
  // A page can put something else under the mouse at any time, also a frame of another origin, whose document no check can
  // see. So a press that the element has not received is released outside: without a release nothing is clicked.
  async press(press) {
    const { x, y, isCurrent } = press;
    await this.move(x, y, isCurrent);
    if (!(await press.isReady())) throw new PressMissed(false);
    requireCurrent(isCurrent);
    await this._send([[MOUSE, { type: "mousePressed", buttons: 1, ...left(x, y) }]]);
    let isReceived = false;
    try {
      isReceived = await press.isReceived();
    } finally {
      if (!isReceived) await this.releaseButton(...OUTSIDE);
    }
    if (!isReceived) throw new PressMissed(true);
  }

  async typeText(text, keys) {
    await this._try(NO_OP);
    let hasStarted = false;
    for (const messages of isTyped(text) ? bursts(text) : [[[INSERT, { text }]]]) {
      await keys.requireFocus(hasStarted);
      requireCurrent(keys.isCurrent, hasStarted);
      hasStarted = true;
      await this._send(messages);
    }
  }

  async pressKey(name, keys) {
    await this._try(NO_OP);
    await keys.requireFocus();
    requireCurrent(keys.isCurrent);
    await this._send(keyMessages(keyOf(name)));
  }

  async move(x, y, isCurrent) {
    await this._awaitPageEvents();
    requireCurrent(isCurrent);
    await this._try([MOUSE, { type: "mouseMoved", x, y }]);
    await this._awaitPageEvents();
  }

  async movePressed(x, y) {
    await this._send([[MOUSE, { type: "mouseMoved", x, y, button: "left", buttons: 1 }]]);
  }

  // After the end of the action too, because the button stays pressed otherwise; but then outside of the page.
  async releaseButton(x, y) {
    const { isOver } = this;
    await this._dispatch([[MOUSE, { type: "mouseReleased", ...left(...(isOver() ? OUTSIDE : [x, y])) }]]);
    if (isOver()) throw connectionLost();
  }

  // Send an event of an HTML drag: dragEnter, dragOver, drop or dragCancel.
  async dragData(type, x, y, data) {
    await this._send([[DRAG, { type, x, y, data }]]);
  }

  // Keep the browser from starting HTML drags itself, which would wait for the mouse of the operating system, while `work`
  // runs; it gets a promise of the data of the first.
  async withInterceptedDrags(work) {
    await this._try(["Input.setInterceptDrags", { enabled: true }]);
    const intercepted = this.tab.nextEvent("Input.dragIntercepted");
    try {
      return await work(intercepted.params.then(({ data }) => data));
    } finally {
      intercepted.end();
      await this.cdp.send(this.tab.id, "Input.setInterceptDrags", { enabled: false }).catch(() => {});
    }
  }

  // Wait until what the page reported about the input so far has arrived: its own thread answers after that.
  async _awaitPageEvents() {
    await this.cdp.send(this.tab.id, "Runtime.evaluate", { expression: "0" }).catch(() => {});
    await sleep(0); // events and answers arrive on different ways
  }

  // Send a message that does not change the page's content.
  async _try(message) {
    try {
      await this.cdp.sendInput(this.tab.id, [message]);
    } catch (error) {
      await this._throwIfClosed();
      throw this.hasStarted ? connectionLost() : new NotDispatched(error.message);
    }
  }

  async _send(messages) {
    if (this.isOver()) throw connectionLost();
    await this._dispatch(messages);
  }

  async _dispatch(messages) {
    this.hasStarted = true;
    try {
      await this.cdp.sendInput(this.tab.id, messages);
    } catch {
      await this._throwIfClosed();
      throw connectionLost();
    }
  }

  async _throwIfClosed() {
    try {
      await Promise.race([this.tab.lost, sleep(CLOSING_MS)]);
    } catch (lost) {
      lost.details = { ...lost.details, effect: "unknown" };
      throw lost;
    }
  }
}

export function requireCurrent(isCurrent, hasStarted = false) {
  if (!isCurrent()) throw new NavigatedAway(hasStarted);
}
