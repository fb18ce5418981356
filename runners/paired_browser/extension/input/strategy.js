// Choose the input device: the debugger first, events of a script if it is not available (S1 §4.6).
import { now, waitUntil } from "../clock.js";
import { ActionFailed, cdpLost, cdpUnavailable, isCode, NotDispatched } from "../failures.js";
import { CdpInput } from "./cdp_input.js";
import { DomInput } from "./dom_input.js";
import { Interactor } from "./interactor.js";

export const RESERVE_MS = 500; // of the action's time, so that a failure has details.effect
const WINDOW_MS = 1000; // until a window that a page opened is one of the task's tabs

// Call `interact(interactor)`; returns {result, byCdp, warnings}. `dialog` {accept, text?} answers the next question of the page.
export async function withInputStrategy(context, interact, { byCdp, locateMs, dialog = null }) {
  const { tab, deadline } = context;
  await context.requireWatch(tab.id);
  const end = deadline - RESERVE_MS;
  const locateUntil = Math.min(end, now() + locateMs);
  const interactorWith = (device) => new Interactor({ ...context, checkAddress: context.checkInput, device, locateUntil, deadline: end });
  tab.isDropped = false;
  tab.dialogs.answerNext(dialog);
  let outcome;
  await context.withholdFrames(tab.id, true);
  try {
    outcome = await tryBoth(context, interact, interactorWith, byCdp);
  } finally {
    tab.lastInputAt = now();
    context.withholdFrames(tab.id, false);
  }
  await waitUntil(() => tab.windowsKept >= tab.windowsOpened, Math.min(end, now() + WINDOW_MS));
  tab.windowsKept = tab.windowsOpened; // a window of the same name is used again
  return outcome;
}

async function tryBoth(context, interact, interactorWith, byCdp) {
  const { tab, pages, cdp } = context;
  const isOver = () => context.isOver;
  const byScript = () => interact(interactorWith(new DomInput(tab, pages, isOver)));
  if (!byCdp) return { result: await byScript(), byCdp: false, warnings: [] };
  try {
    await cdp.attach(tab.id);
    return { result: await interact(interactorWith(new CdpInput(tab, cdp, isOver))), byCdp: true, warnings: [] };
  } catch (cause) {
    const mayFallBack = cause instanceof NotDispatched || isCode(cause, "CDP_PERMISSION_DENIED") ||
      (isCode(cause, "CDP_UNAVAILABLE") && cause.details.effect !== "unknown");
    if (!mayFallBack) throw cause;
    cdp.forget(tab.id);
    return { result: await withScript(byScript), byCdp: false, warnings: [warningOf(cause)] };
  }
}

async function withScript(byScript) {
  try {
    return await byScript();
  } catch (failure) {
    if (!(failure instanceof ActionFailed) || failure.code !== "NAVIGATION_TIMEOUT") throw failure;
    const kind = failure.details.effect === "unknown" ? cdpLost : cdpUnavailable;
    throw kind("Real input was not available, and synthetic input failed.",
      { effect: "none", ...failure.details, causeCode: failure.code });
  }
}

const warningOf = (cause) => {
  const code = isCode(cause, "CDP_PERMISSION_DENIED") ? cause.code : "CDP_UNAVAILABLE";
  return `${code}: real input was not available; synthetic events were used.`;
};
