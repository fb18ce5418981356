// Drag an element and drop it, as a person does with the mouse (page/drag.js).
//
// Pages implement dragging in two ways. With HTML drag and drop, the browser turns the movement into drag events, which the
// debugger sends as such. Otherwise the page follows the pointer itself.
import { within } from "../clock.js";
import { ContextLost, elementNotFound, NavigatedAway, PressMissed } from "../failures.js";
import { CdpInput, OUTSIDE, requireCurrent } from "./cdp_input.js";
import { effectUnknown, INPUT_MS, keepsMoving, MAX_MISSES } from "./interactor.js";
import { documentGone, requireFound } from "./locator.js";
import { PagePress } from "./press.js";

const INTERCEPT_MS = 2000;
const FIRST_PIXELS = [3, 8]; // a movement of a few pixels starts a drag
const STEPS = 8;
const DROP_MESSAGES = {
  gone: "The element to drop on disappeared.",
  other_origin: "A frame of another origin is where to drop, which gets no input.",
};
const NOT_DROPPED = "The page did not accept the drop there.";

// Drag `source` onto another element (`onto`), or by an `offset` {dx, dy} in CSS pixels; returns warnings.
export async function drag(interactor, source, { onto = null, offset = null }) {
  const isByMouse = interactor.device instanceof CdpInput;
  let element;
  for (let miss = 0; miss < MAX_MISSES; miss += 1) {
    try {
      if (onto) await findDestination(interactor, onto);
      element = await interactor.locate(source, "clickable", { willClick: true });
      await interactor.run("watchDrag", { isByMouse });
    } catch (error) {
      if (error instanceof ContextLost) continue;
      throw error;
    }
    const attempt = new PageDrag(interactor, element, offset);
    try {
      const isMade = await effectUnknown(() => interactor.perform(isByMouse ? attempt.byMouse() : attempt.byScript(), INPUT_MS));
      if (isMade) return attempt.warnings();
    } catch (error) {
      if (!(error instanceof NavigatedAway)) throw error;
      if (error.hasStarted) throw documentGone("during the dragging", "unknown");
      await interactor.waitForNextDocument();
    }
  }
  throw keepsMoving(element);
}

async function findDestination(interactor, onto) {
  const found = await interactor.run("dragDestination", interactor.resolved(onto));
  requireFound(found, onto, await interactor.tab.url());
  interactor.keep(onto, found.node);
}

// One attempt to drag the element that was located last.
class PageDrag {
  constructor(interactor, element, offset) {
    Object.assign(this, { interactor, offset, device: interactor.device, start: element.point ?? [0, 0] });
    this.isCurrent = interactor.documentCheck(element);
  }

  // Drag with the mouse; false if it would have taken another element.
  async byMouse() {
    const press = new PagePress(this.interactor, this.start, this.isCurrent);
    return this.device.withInterceptedDrags(async (intercepted) => {
      try {
        await this.device.press(press);
      } catch (error) {
        if (!(error instanceof PressMissed)) throw error;
        await this.interactor.requireMissed(press, error);
        return false;
      }
      let data;
      let end;
      try {
        for (const pixels of FIRST_PIXELS) await this.device.movePressed(this.start[0] + pixels, this.start[1] + pixels);
        data = await this._dragData(intercepted);
        end = await this._end();
        requireCurrent(this.isCurrent, true);
      } catch (error) {
        if (this.isCurrent()) await this.device.releaseButton(...OUTSIDE).catch(() => {});
        throw error;
      }
      if (data) for (const kind of ["dragEnter", "dragOver", "dragOver", "drop"]) await this.device.dragData(kind, ...end, data);
      else await this._moveAndRelease(end);
      return true;
    });
  }

  // What the page drags with HTML drag and drop; null if it follows the pointer.
  async _dragData(intercepted) {
    if (!(await this._run("htmlDrag")).isStarted) return null;
    return within(INTERCEPT_MS, intercepted).catch(() => null);
  }

  async _moveAndRelease([toX, toY]) {
    const [fromX, fromY] = this.start;
    for (let step = 1; step <= STEPS; step += 1) {
      await this.device.movePressed(fromX + ((toX - fromX) * step) / STEPS, fromY + ((toY - fromY) * step) / STEPS);
    }
    await this.device.movePressed(toX, toY);
    await this.device.releaseButton(toX, toY);
  }

  async byScript() {
    requireDestination(await this.device.drag(this.offset), "none");
    return true;
  }

  // A warning if the page uses HTML drag and drop and did not accept the drop.
  async warnings() {
    try {
      await this.interactor.run("clickOutcome");
      const { isHtmlDrag, isDropped } = await this.interactor.run("dragOutcome");
      return isHtmlDrag && !isDropped ? [NOT_DROPPED] : [];
    } catch (error) {
      if (error instanceof ContextLost) return [];
      throw error;
    }
  }

  // The point where to drop, in view; no frame of another origin is there.
  async _end() {
    const { start: [x, y], offset } = this;
    const point = await this._run("dropPoint", offset && { x: x + offset.dx, y: y + offset.dy });
    requireDestination(point, "unknown");
    return [point.x, point.y];
  }

  // Run a command while the button is pressed.
  async _run(command, args = null) {
    try {
      return await this.interactor.run(command, args);
    } catch (error) {
      throw error instanceof ContextLost ? new NavigatedAway(true) : error;
    }
  }
}

function requireDestination(answer, effect) {
  if ("problem" in answer) throw elementNotFound(DROP_MESSAGES[answer.problem], { reason: answer.problem, effect });
}
