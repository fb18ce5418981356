// Input on an element: what the page says before and after it (generated/act.js).
import { ActionFailed, ContextLost, elementNotFound, NavigatedAway } from "../failures.js";
import { nextPress } from "../takeover/frame_ports.js";
import { elementChanged } from "./locator.js";

const LEAVING_MS = 500; // for an answer of a page that navigates away: it may never come
const POINT_MESSAGES = {
  outside: "The point is outside of the page.",
  moving: "What is at the point keeps changing.",
  other_origin: "A frame of another origin is there, which gets no input; open its address as a page of its own.",
};

// The press of the element that was located last ("pressReady"), or of what is at a point of the viewport ("pointReady").
export class PagePress {
  constructor(interactor, [x, y], isCurrent, command = "pressReady") {
    Object.assign(this, { interactor, x, y, isCurrent, command, report: null, documents: interactor.tab.documents });
  }

  // Return whether a press would hit the element, once the page has drawn a frame; throws NavigatedAway if it shows another document.
  async isReady() {
    this.report = nextPress(this.interactor.tab.id);
    let answer;
    try {
      answer = await this.interactor.run(this.command, { x: this.x, y: this.y });
    } catch (error) {
      throw error instanceof ContextLost ? new NavigatedAway() : error;
    }
    if (answer.reason) throw nothingToClick(answer.reason);
    return answer.isReady;
  }

  // Return whether the element has received the press; throws NavigatedAway if the page navigates because of it, and ELEMENT_NOT_FOUND
  // if that is unknown.
  async isReceived() {
    try {
      const { outcome } = await this._answer("pressOutcome");
      if (outcome !== "unseen") await this.report; // no later press may be taken for this one
      return outcome === "hit";
    } catch (error) {
      if (!(error instanceof ContextLost)) throw error;
      throw await this.report ? new NavigatedAway(true) : notReceived();
    }
  }

  // End the watching; returns what a click hit: a page that navigates was clicked.
  async outcome() {
    const { tab } = this.interactor;
    try {
      const { outcome, changed } = await this._answer("clickOutcome");
      if (outcome === "changed") throw elementChanged("the click", changed, "unknown");
      return outcome === "diverted" && this._isGone() ? "hit" : outcome; // a page that navigates may get no more events
    } catch (error) {
      if (error instanceof ContextLost) return "hit";
      if (tab.isLeaving && error.code === "NAVIGATION_TIMEOUT") return "hit";
      throw error;
    }
  }

  _isGone() {
    const { tab } = this.interactor;
    return tab.isLeaving || tab.documents !== this.documents;
  }

  _answer(command) {
    return this.interactor.run(command, null, this.interactor.tab.isLeaving ? LEAVING_MS : undefined);
  }
}

// Keys for the element of this origin that has the focus.
export class PageKeys {
  constructor(interactor, isCurrent) {
    Object.assign(this, { interactor, isCurrent });
  }

  // Throw if the next key would reach a document of another origin.
  async requireFocus(hasStarted = false) {
    const effect = hasStarted ? "unknown" : "none";
    let answer;
    try {
      answer = await this.interactor.run("keysReady");
    } catch (error) {
      if (error instanceof ActionFailed) error.details.effect = effect;
      throw error instanceof ContextLost ? new NavigatedAway(hasStarted) : error;
    }
    if (answer.isReady) return;
    throw elementNotFound("The page has moved the focus to a frame of another origin, which gets no input.", { reason: "other_origin", effect });
  }
}

export const nothingToClick = (reason) => elementNotFound(POINT_MESSAGES[reason], { reason, effect: "none" });

// Nobody knows what received the press.
export const notReceived = () => elementNotFound(
  "The element did not receive the click: the page put something else there, or navigated, at that moment. Look at the page again.",
  { reason: "not_received", effect: "unknown" });
