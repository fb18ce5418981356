// Check whether a person's input is seen in the page of a tab. A page whose scripts were there before the watch may hide it: one that
// was loaded when the extension could not run there, and was not loaded again since then.
import { now, waitUntil } from "../clock.js";
import { cdpPermissionDenied } from "../failures.js";
import { injectContentScripts, registerContentScripts } from "./content_scripts.js";
import { isTopFrame, portsOf } from "./frame_ports.js";

const CONNECT_MS = 3000;
const [FIRST, LATE] = ["overlay", "overlay late"]; // the names of a frame's connection (overlay/frame.js)

export const isOfFrame = ({ name }) => name === FIRST || name === LATE;

// Throw CDP_PERMISSION_DENIED if the watch was not there before the scripts of the page that a tab shows.
export async function requireWatch(tabId) {
  let watch = await watchOf(tabId);
  if (!watch) {
    await registerContentScripts();
    await injectContentScripts(tabId);
    await waitUntil(async () => Boolean(watch = await watchOf(tabId)), now() + CONNECT_MS);
  }
  if (watch === FIRST) return;
  throw cdpPermissionDenied(
    "This page was loaded before the extension could watch it for the person's input, so it is read, and gets no input of an agent. " +
    "The person is asked in the page to reload it.", { reason: "not_watched", effect: "none" });
}

// FIRST, LATE, or undefined if the page is not watched. On other pages than those of servers no scripts of extensions run.
async function watchOf(tabId) {
  const top = await chrome.webNavigation.getFrame({ tabId, frameId: 0 });
  if (!/^https?:/.test(top?.url ?? "")) return FIRST;
  return portsOf(tabId).find((port) => isTopFrame(port) && port.sender.documentId === top.documentId)?.name;
}
