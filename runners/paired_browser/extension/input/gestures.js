// Hover over an element, press keys in it, and select options of a list.
import { now, sleep } from "../clock.js";
import { ContextLost, invalidParameter, NavigatedAway } from "../failures.js";
import { CdpInput } from "./cdp_input.js";
import { DomInput } from "./dom_input.js";
import { effectUnknown, INPUT_MS, keepsMoving, MAX_MISSES, requireOption } from "./interactor.js";
import { documentGone, requireFound } from "./locator.js";

const RETRY_MS = 100;

// Move the mouse over an element, once nothing covers it.
export async function hover(interactor, target) {
  const { device } = interactor;
  let element;
  for (let miss = 0; miss < MAX_MISSES; miss += 1) {
    element = await reach(interactor, target);
    const [x, y] = element.point ?? [0, 0];
    try {
      const isThere = await effectUnknown(async () => {
        await interactor.perform(device.move(x, y, interactor.documentCheck(element)), INPUT_MS);
        return device instanceof DomInput || (await interactor.run("isHovered")).isHovered;
      });
      if (isThere) return;
    } catch (error) {
      if (error instanceof ContextLost) return; // the page navigates because of the mouse
      if (!(error instanceof NavigatedAway)) throw error;
      await interactor.waitForNextDocument();
    }
  }
  throw keepsMoving(element);
}

// The element and its point, once nothing covers it.
async function reach(interactor, target) {
  for (;;) {
    const element = await interactor.locate(target, "clickable");
    if (element.point) return element;
    if (now() >= interactor.locateUntil) {
      const point = await interactor.run("hoverPoint");
      if (point.reason) requireFound({ ...point, problem: point.reason }, target, element.url);
    }
    await sleep(RETRY_MS);
  }
}

// Press a key in an element, or where the focus is (`target` is null); returns {focus, warnings}.
export async function pressKeys(interactor, target, key, times) {
  const { device, tab } = interactor;
  const { documents } = tab;
  let answer;
  interactor.checkAddress(await tab.url());
  try {
    answer = await interactor.run("focusForKeys", target && interactor.resolved(target));
  } catch (error) {
    throw error instanceof ContextLost ? documentGone("before the key was pressed", "none") : error;
  }
  requireFound(answer, target, await tab.url());
  interactor.keep(target, answer.node);
  interactor.checkAddress(answer.url);
  const keys = interactor.keys(interactor.documentCheck({ url: answer.url, documents }));
  for (let pressed = 0; pressed < times; pressed += 1) {
    const pressing = device instanceof CdpInput ? device.pressKey(key, keys) : device.pressListenedKey(key);
    try {
      await effectUnknown(() => interactor.perform(pressing, INPUT_MS));
    } catch (error) {
      if (!(error instanceof NavigatedAway)) throw error;
      if (!pressed) throw documentGone("before the key was pressed", "none");
      return { focus: answer.focus, warnings: [`The page navigated after ${pressed} of ${times} presses.`] };
    }
  }
  return { focus: answer.focus, warnings: [] };
}

// Select options of a list; returns the labels of all that are selected then.
export async function selectOptions(interactor, target, options) {
  const field = await interactor.locate(target, "field");
  let answer;
  try {
    answer = await effectUnknown(() => interactor.run("selectOptions", options));
  } catch (error) {
    throw error instanceof ContextLost ? documentGone("while its options were selected", "unknown") : error;
  }
  if (answer.problem) {
    const message = answer.problem === "not_a_select"
      ? "The element is not a list of options that can be selected: click it, then click the option that it shows."
      : `The list “${field.match.label}” takes exactly one option.`;
    throw invalidParameter(message, { reason: answer.problem, effect: "none" });
  }
  requireOption(answer, field);
  return answer.selected;
}
