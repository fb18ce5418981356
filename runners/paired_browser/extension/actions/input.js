// The actions with mouse and keyboard: browser_click, browser_type, browser_select, browser_hover, browser_press_key and
// browser_drag.
import { cdpUnavailable, elementNotFound, isCode, NotDispatched } from "../failures.js";
import { connectionLost } from "../input/cdp_input.js";
import { DomInput } from "../input/dom_input.js";
import { drag } from "../input/drag.js";
import { hover, pressKeys, selectOptions } from "../input/gestures.js";
import { hasTarget, nameOf, referenceOf } from "../input/locator.js";
import { withInputStrategy } from "../input/strategy.js";
import { watchedSubmit } from "../input/submit_watch.js";
import { resultOf } from "./context.js";

const LOCATE_MS = 2000;
const FIELD_LOCATE_MS = 4000;
const BY_SCRIPT = new Set(["choice", "set"]); // options, dates, sliders: their keys are not uniform
const NO_EFFECT = "After Enter the page requested nothing and shows nothing new. If it was to search or to send, click the button for that.";

export async function click(context, params) {
  await context.useTab(params.tabId);
  const { byCdp, warnings } = await withInputStrategy(context, (interactor) => clickWith(interactor, params),
    { byCdp: params.strategy !== "dom_click", locateMs: LOCATE_MS, dialog: params.dialog });
  return resultOf({ clicked: true, strategy: byCdp ? "cdp_mouse" : "dom_click", warnings: [...warnings, ...await context.notices()] });
}

async function clickWith(interactor, params) {
  if (hasTarget(params)) {
    await interactor.click(referenceOf(params));
  } else if (interactor.device instanceof DomInput) { // it clicks the element that was located last
    throw cdpUnavailable("Real input is not available, and without it only elements can be clicked.", { effect: "none" });
  } else {
    const scale = interactor.tab.pictureScale;
    await interactor.clickPoint(params.x / scale, params.y / scale);
  }
}

// Replace the text of a field, or of the field that has the focus; with `submit`, press Enter there.
export async function type(context, params) {
  await context.useTab(params.tabId);
  const { result, byCdp, warnings } = await withInputStrategy(context, (interactor) => fill(interactor, context, params),
    { byCdp: params.strategy !== "dom_input", locateMs: FIELD_LOCATE_MS, dialog: params.dialog });
  const strategy = byCdp && !BY_SCRIPT.has(result.way) ? "cdp_key" : "dom_input";
  return resultOf({ typed: true, strategy, warnings: [...warnings, ...result.warnings, ...await context.notices()] });
}

async function fill(interactor, context, params) {
  const target = referenceOf(params);
  try {
    const [field, warnings] = await interactor.fill(target, params.text);
    const more = params.submit ? await submit(interactor, context, field, params.text) : [];
    return { way: field.way, warnings: [...warnings, ...more] };
  } catch (error) {
    if (!isCode(error, "PAGE_CRASHED")) throw error;
    if (error.details.effect === "none") {
      throw elementNotFound(`The element for ${nameOf(target)} is gone: the page navigated to another document.`, { reason: "gone", effect: "none" });
    }
    return { way: "text", warnings: ["The page navigated to another document during the typing."] };
  }
}

async function submit(interactor, context, field, text) {
  const [, hasBegun] = await watchedSubmit(context, text, async () => {
    try {
      await interactor.pressKey("Enter", field);
    } catch (error) { // else the field would be filled again without real input
      throw error instanceof NotDispatched ? connectionLost() : error;
    }
  });
  return hasBegun ? [] : [NO_EFFECT];
}

export async function select(context, params) {
  await context.useTab(params.tabId);
  const { result, warnings } = await withInputStrategy(context,
    (interactor) => selectOptions(interactor, referenceOf(params), params.options),
    { byCdp: false, locateMs: LOCATE_MS, dialog: params.dialog });
  return resultOf({ selected: result, warnings: [...warnings, ...await context.notices()] });
}

export async function hoverOver(context, params) {
  const tab = await context.useTab(params.tabId);
  const { byCdp, warnings } = await withInputStrategy(context, (interactor) => hover(interactor, referenceOf(params)),
    { byCdp: true, locateMs: LOCATE_MS });
  return resultOf({ hovered: true, strategy: byCdp ? "cdp_mouse" : "dom_events", warnings: [...warnings, ...tab.takeNotices()] });
}

export async function pressKey(context, params) {
  await context.useTab(params.tabId);
  const target = hasTarget(params) ? referenceOf(params) : null;
  const { result, byCdp, warnings } = await withInputStrategy(context,
    (interactor) => pressKeys(interactor, target, params.key, params.times ?? 1),
    { byCdp: true, locateMs: LOCATE_MS, dialog: params.dialog });
  return resultOf({
    pressed: true, strategy: byCdp ? "cdp_key" : "dom_events", focus: result.focus,
    warnings: [...warnings, ...result.warnings, ...await context.notices()],
  });
}

export async function dragAndDrop(context, params) {
  const tab = await context.useTab(params.tabId);
  const isOnto = params.toClickId != null || params.toXpath != null;
  const to = isOnto
    ? { onto: referenceOf({ clickId: params.toClickId, xpath: params.toXpath }) }
    : { offset: { dx: params.dx ?? 0, dy: params.dy ?? 0 } };
  const { result, byCdp, warnings } = await withInputStrategy(context, (interactor) => drag(interactor, referenceOf(params), to),
    { byCdp: true, locateMs: LOCATE_MS });
  return resultOf({
    dragged: true, strategy: byCdp ? "cdp_mouse" : "dom_events", warnings: [...warnings, ...result, ...tab.takeNotices()],
  });
}
