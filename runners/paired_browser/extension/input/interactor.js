// Click elements and fill fields, so that a page reacts as to a person.
import { now, within } from "../clock.js";
import { ActionFailed, ContextLost, elementNotFound, invalidParameter, NavigatedAway, navigationTimeout, pageCrashed, PressMissed, TimedOut } from "../failures.js";
import { waitForNextDocument } from "../tab/navigation.js";
import { elementChanged, keyOf, locateElement } from "./locator.js";
import { nothingToClick, notReceived, PageKeys, PagePress } from "./press.js";

export const INPUT_MS = 10_000;
const TYPE_MS = 30_000;
export const MAX_MISSES = 5;
const MASK = "***";
const MAY_HAVE_ACTED = new Set(["NAVIGATION_TIMEOUT", "PAGE_CRASHED", "TASK_TAB_CLOSED"]);

export class Interactor {
  // `device`: a CdpInput or a DomInput. `checkAddress(url)` throws if a document of this URL must not receive input; it is
  // called when the element is located, and again before the input. Input reaches only the document of the element.
  //
  // `nodes`: the element of each reference that was resolved. A reference is resolved once: if its element is gone, no other
  // one takes its place. `judged`: {node, compares}: the element that the action was judged by, and whether it has to be as it
  // was then.
  constructor({ tab, pages, device, locateUntil, deadline, checkAddress, nodes, judged }) {
    Object.assign(this, { tab, pages, device, locateUntil, deadline, checkAddress, nodes, judged });
  }

  // The reference with the element that it named before, if it was resolved.
  resolved(target) {
    const node = this.nodes.get(keyOf(target)) ?? null;
    return { ...target, node, compares: this.judged && node === this.judged.node ? Boolean(this.judged.compares) : null };
  }

  // Keep the element that a reference named.
  keep(target, node) {
    if (target && !this.nodes.has(keyOf(target))) this.nodes.set(keyOf(target), node);
  }

  // Click the element once.
  async click(target) {
    let element;
    for (let miss = 0; miss < MAX_MISSES; miss += 1) {
      element = await this.locate(target, "clickable", { willClick: true });
      const outcome = await this._clickAt(element);
      if (outcome === "left") await this.waitForNextDocument();
      else if (outcome !== "missed") return element;
    }
    throw keepsMoving(element);
  }

  // Click at a point of the viewport, in CSS pixels, whatever is there.
  async clickPoint(x, y) {
    for (let miss = 0; miss < MAX_MISSES; miss += 1) {
      await this._expectAt(x, y);
      const isCurrent = this.documentCheck({ url: await this.tab.url(), documents: this.tab.documents });
      const outcome = await this._click(new PagePress(this, [x, y], isCurrent, "pointReady"));
      if (outcome === "left") throw navigated("none");
      if (outcome === "hit") return;
    }
    throw nothingToClick("moving");
  }

  // Check that the judged element is at a point, and let only that one be clicked.
  async _expectAt(x, y) {
    if (!this.judged) return;
    let answer;
    try {
      answer = await this.run("expectAt", { node: this.judged.node, compares: Boolean(this.judged.compares), x, y });
    } catch (error) {
      throw error instanceof ContextLost ? movedAway() : error;
    }
    if (answer.problem === "changed") throw elementChanged("x and y", answer.changed);
    if (answer.problem) throw movedAway();
  }

  // Throw if the judged element is not as it was any more; input of the action came before.
  async requireUnchanged(name) {
    if (!this.judged?.compares) return;
    const { changed } = await this.run("expectedChange");
    if (changed) throw elementChanged(name, changed, "unknown");
  }

  // Replace the value of a field; returns the field and warnings.
  async fill(target, value) {
    const field = await this.locate(target, "field");
    const fill = { toggle: "_toggle", radio: "_toggle", choice: "_choose", set: "_set", text: "_type", rich: "_type" }[field.way];
    if (!fill) {
      throw elementNotFound("The matching element does not accept text.", { reason: "not_a_field", candidates: [field.match] });
    }
    try {
      return [field, await this[fill](field, value)];
    } catch (error) {
      throw error instanceof ContextLost ? navigated("unknown") : error;
    }
  }

  // Press a key in the focused field, which is the field that was filled last.
  async pressKey(key, element) {
    await effectUnknown(async () => {
      try {
        await this.requireUnchanged(element.match.label);
        await this.perform(this.device.pressKey(key, this.keys(this.documentCheck(element))), INPUT_MS);
      } catch (error) {
        throw error instanceof NavigatedAway ? navigated("unknown") : error;
      }
    });
  }

  // Return the element once it is usable, without any effect.
  async locate(target, purpose, { willClick = false } = {}) {
    let element;
    try {
      element = await locateElement(this, this.resolved(target), purpose, { until: this.locateUntil, willClick, answerBy: this.deadline });
    } catch (error) {
      if (error instanceof ActionFailed) error.details.effect ??= "none";
      throw error;
    }
    this.checkAddress(element.url);
    this.keep(target, element.node);
    return element;
  }

  // A function that says whether the page still shows the element's document.
  documentCheck({ url, documents }) {
    return () => {
      this.checkAddress(url);
      return this.tab.documents === documents && !this.tab.isLeaving;
    };
  }

  // Wait for the document to which the page navigates; nothing was done before.
  async waitForNextDocument() {
    try {
      await waitForNextDocument(this.tab, this.locateUntil, 0);
    } catch (error) {
      if (error instanceof ActionFailed) error.details.effect = "none";
      throw error;
    }
  }

  // Run a command of the page.
  async run(command, args = null, ms = INPUT_MS) {
    return this.pages.run(this.tab, command, args, this.msLeft(ms));
  }

  // Keys for the element that has the focus.
  keys(isCurrent) {
    return new PageKeys(this, isCurrent);
  }

  // Await input for at most `ms`, and no longer than the tab is open.
  async perform(work, ms) {
    work.catch(() => {});
    return Promise.race([within(this.msLeft(ms), work), this.tab.lost]);
  }

  msLeft(atMost) {
    return Math.max(100, Math.min(atMost, this.deadline - now()));
  }

  // Click at the element's point; returns as `_click`.
  async _clickAt(element) {
    return this._click(new PagePress(this, element.point ?? [0, 0], this.documentCheck(element)));
  }

  // Click once: "hit"; "missed" or "left" (the page navigates away) if nothing was clicked. Throws ELEMENT_NOT_FOUND, with the
  // effect unknown, if the element did not receive the click.
  async _click(press) {
    return effectUnknown(async () => {
      try {
        await this.perform(this.device.click(press), INPUT_MS);
      } catch (error) {
        if (error instanceof NavigatedAway) return error.hasStarted ? "hit" : "left";
        if (error instanceof PressMissed) return this.requireMissed(press, error);
        if (!this.tab.isDropped || (await press.outcome()) !== "hit") throw error;
        return "hit"; // Chrome dropped the debugger because of the click
      }
      if ((await press.outcome()) === "diverted") throw notReceived();
      return "hit";
    });
  }

  // "missed" if the press has hit nothing; throws ELEMENT_NOT_FOUND, with the effect unknown, if what it hit is unknown.
  async requireMissed(press, { hasPressed }) {
    if ((await press.outcome()) === "missed" || !hasPressed) return "missed";
    throw notReceived();
  }

  async _toggle(field, value) {
    const toggle = await this.run("needsClick", value);
    requireOption(toggle, field);
    if (!toggle.needsClick) return [];
    for (let miss = 0; miss < MAX_MISSES; miss += 1) {
      const point = await this.run("reachTarget");
      if (point.reason) throw elementNotFound("The box cannot be clicked: another element covers it.", { ...point, candidates: [field.match] });
      const outcome = await this._clickAt({ ...field, point: [point.x, point.y] });
      if (outcome === "left") throw navigated("none");
      if (outcome !== "missed") return this._unchangedWarning(field, toggle.before);
    }
    throw keepsMoving(field);
  }

  async _unchangedWarning(field, before) {
    try {
      const { value } = await this.run("shownValue");
      return value === before ? [`“${field.match.label}” was clicked, but its state did not change.`] : [];
    } catch {
      return [];
    }
  }

  async _choose(field, value) {
    requireOption(await effectUnknown(() => this.run("chooseOption", value)), field);
    return [];
  }

  async _set(field, value) {
    const { value: shown } = await effectUnknown(() => this.run("setValue", value));
    if (!value || shown) return [];
    const { type, label } = field.match;
    throw invalidParameter(
      `The ${type} field “${label}” does not accept this value; dates are written YYYY-MM-DD, times HH:MM, colours #RRGGBB.`,
      { field: label, type });
  }

  async _type(field, value) {
    try {
      await this.run("focus");
    } catch (error) {
      throw error instanceof ContextLost ? navigated("none") : error;
    }
    const keys = this.keys(this.documentCheck(field));
    try {
      await this.perform(value ? this.device.typeText(value, keys) : this.device.pressKey("Delete", keys), TYPE_MS);
    } catch (error) {
      if (error instanceof TimedOut) throw hangs();
      if (error instanceof NavigatedAway) throw navigated(error.hasStarted ? "unknown" : "none");
      throw error;
    }
    return differences(field, value, (await this.run("shownValue")).value);
  }
}

const squeezed = (text) => text.replace(/\s+/g, "");
function differences(field, value, shown) {
  if (squeezed(shown) === squeezed(value)) return [];
  const { label, type } = field.match;
  if (value && !shown.trim()) {
    throw invalidParameter(`The field “${label}” does not accept this value: it is still empty.`, { field: label, type });
  }
  return [`The field “${label}” changed the value to: ${field.isSecret ? MASK : shown.slice(0, 100)}`];
}

// Throw if the page's answer says that the field has no such option.
export function requireOption(answer, field) {
  if (!("missing" in answer)) return;
  const { label } = field.match;
  throw elementNotFound(`The field “${label}” has no such option.`,
    { reason: "no_such_option", field: label, options: answer.missing, candidates: [field.match] });
}

export const keepsMoving = (element) => elementNotFound("The element moved each time that the mouse reached it.",
  { reason: "moving", candidates: element ? [element.match] : [], effect: "none" });

const movedAway = () => elementNotFound("The element that the click was judged by is not at this point any more.", { reason: "moving", effect: "none" });
const hangs = () => navigationTimeout("The page did not answer: its script hangs.", { effect: "unknown" });
const navigated = (effect) => pageCrashed("The page navigated to another document while its field was filled.", { effect });

// Set details.effect of failures inside to unknown: the input may have had an effect.
export async function effectUnknown(work) {
  try {
    return await work();
  } catch (error) {
    if (error instanceof TimedOut) throw hangs();
    if (error instanceof ActionFailed && MAY_HAVE_ACTED.has(error.code)) error.details.effect = "unknown";
    throw error;
  }
}
