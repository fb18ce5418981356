// Events that a page script dispatches, for when the debugger gives no real input (page/synthetic_input.js).
//
// They go to the element that was located last; a document in which none was located ignores them, so that `isCurrent`
// is not needed. Pages can tell them from a person's.
import { cdpUnavailable, ContextLost, TimedOut } from "../failures.js";
import { keyOf, SHIFT } from "./keys.js";

const BY_SCRIPT = new Set(["Escape", "Backspace", "Delete"]); // and Enter, Space and characters
const COMMAND_MS = 10_000;

export class DomInput {
  // `isOver()`: the action has ended, and dispatches nothing any more.
  constructor(tab, pages, isOver = () => false) {
    Object.assign(this, { tab, pages, isOver });
  }

  async click() {
    await this._run("domClick");
  }

  async typeText(text) {
    await this._run("domType", text);
  }

  // Enter: submit the field's form. Delete: empty the field.
  async pressKey(name) {
    if (name === "Enter") await this._run("domEnter");
    else await this._run("domType", "");
  }

  async move() {
    await this._run("domHover");
  }

  // Press a key in the element, for the page's listeners and with the key's own effect.
  async pressListenedKey(name) {
    const key = keyOf(name);
    if ((key.modifiers ?? 0) & ~SHIFT || !("text" in key || BY_SCRIPT.has(key.key))) {
      throw cdpUnavailable(`Real input was not available, and a script cannot press ${name}.`, { effect: "none" });
    }
    await this._run("domKey", { key: key.key, code: key.code, keyCode: key.windowsVirtualKeyCode, text: key.text ?? "" });
  }

  // Drag the element to the destination that was found last, or by an offset in pixels.
  async drag(offset) {
    return this._run("domDrag", offset);
  }

  async _run(command, args = null) {
    if (this.isOver()) throw new TimedOut();
    try {
      return await this.pages.run(this.tab, command, args, COMMAND_MS);
    } catch (error) {
      if (error instanceof ContextLost) return {}; // the input started a navigation
      throw error;
    }
  }
}
