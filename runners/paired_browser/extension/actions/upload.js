// The action browser_upload: choose files in a file field of the page.
//
// With the debugger: click the field, its label or the button that asks for files, and answer the page's request. Without:
// give the files to the field itself. It submits no form.
import { now, within } from "../clock.js";
import { ContextLost, elementNotFound, invalidParameter, TimedOut } from "../failures.js";
import { referenceOf } from "../input/locator.js";
import { withInputStrategy } from "../input/strategy.js";
import { originOf } from "../own_pages.js";
import { resultOf } from "./context.js";

const LOCATE_MS = 4000;
const CHOOSER_MS = 2000; // until the page asks for files after the click
const MAX_BYTES = 26_214_400; // of all files together
const CHUNK = 1_048_576; // characters of a file that are sent to the page at once
const WORLD = "continuity";

export async function upload(context, params) {
  const tab = await context.useTab(params.tabId);
  const files = await download(context);
  const way = context.cdp.isAttached(tab.id) ? answerChooser : fillField;
  const warnings = await way(context, params, files);
  return resultOf({
    uploaded: true, files: files.map(({ fileName, bytes }) => ({ fileName, bytes: bytes.length })),
    warnings: [...warnings, ...await context.notices()],
  });
}

// The files' contents, from the addresses that came with the action.
async function download({ files, connection, deadline }) {
  if (!files.length) throw invalidParameter("files: this call has no files.", { effect: "none" });
  let left = MAX_BYTES;
  const found = [];
  for (const { fileName, mediaType, url } of files) {
    const response = await within(Math.max(100, deadline - now()), fetch(new URL(url, connection.server), { credentials: "omit" }))
      .catch(() => null);
    if (!response?.ok) throw invalidParameter(`The file ${fileName} could not be read.`, { effect: "none", httpStatus: response?.status ?? 0 });
    const bytes = new Uint8Array(await response.arrayBuffer());
    left -= bytes.length;
    if (left < 0) throw invalidParameter(`The files have more than ${MAX_BYTES} bytes together.`, { effect: "none" });
    found.push({ fileName, mediaType, bytes });
  }
  return found;
}

async function answerChooser(context, params, files) {
  const { tab, cdp } = context;
  await cdp.send(tab.id, "Page.setInterceptFileChooserDialog", { enabled: true });
  const opened = tab.nextEvent("Page.fileChooserOpened");
  try {
    const { warnings } = await withInputStrategy(context, (interactor) => interactor.click(referenceOf(params)), { byCdp: true, locateMs: LOCATE_MS });
    const chooser = await within(CHOOSER_MS, opened.params);
    if (!(await isOfPage(context, chooser.frameId))) {
      throw invalidParameter("A frame of another origin asked for the files; it gets none.", { reason: "other_origin", effect: "unknown" });
    }
    if (files.length > 1 && chooser.mode !== "selectMultiple") {
      throw invalidParameter("The field accepts one file only.", { effect: "unknown" }); // the click may have run a script
    }
    await within(context.msLeft(), giveFiles(context, chooser.backendNodeId, files));
    return warnings;
  } catch (error) {
    if (!(error instanceof TimedOut)) throw error;
    throw invalidParameter("The element was clicked, but the page asked for no file.", { effect: "unknown" });
  } finally {
    opened.end();
    await cdp.send(tab.id, "Page.setInterceptFileChooserDialog", { enabled: false }).catch(() => {});
  }
}

// Return whether a frame and those around it are of the origin of their page.
async function isOfPage({ tab, cdp }, frameId) {
  const { frameTree } = await cdp.send(tab.id, "Page.getFrameTree");
  const isIn = ({ frame, childFrames = [] }) => isSameOrigin(frame.url, frameTree.frame.url) && (frame.id === frameId || childFrames.some(isIn));
  return isIn(frameTree);
}

const isSameOrigin = (url, pageUrl) => url.startsWith("about:") || originOf(url) === originOf(pageUrl);

// Give the files to a field that the debugger names.
async function giveFiles({ tab, cdp }, backendNodeId, files) {
  const failed = () => invalidParameter("The field did not take the files in time.", { effect: "unknown" });
  if (backendNodeId === undefined) throw failed();
  try {
    const { frameTree } = await cdp.send(tab.id, "Page.getFrameTree");
    const { executionContextId } = await cdp.send(tab.id, "Page.createIsolatedWorld", { frameId: frameTree.frame.id, worldName: WORLD });
    const { object } = await cdp.send(tab.id, "DOM.resolveNode", { backendNodeId, executionContextId })
      .catch(() => cdp.send(tab.id, "DOM.resolveNode", { backendNodeId })); // it is in a frame
    const call = (functionDeclaration, ...values) => cdp.send(tab.id, "Runtime.callFunctionOn", {
      functionDeclaration, objectId: object.objectId, arguments: values.map((value) => ({ value })), returnByValue: true,
    });
    for (const [file, { bytes }] of files.entries()) {
      for (const part of partsOf(bytes)) await call("function (file, part) { ((this.continuityParts ??= [])[file] ??= []).push(part); }", file, part);
    }
    const names = files.map(({ fileName, mediaType }) => ({ fileName, mediaType }));
    const { result, exceptionDetails } = await call(`function (names) {
      const parts = this.continuityParts ?? [];
      delete this.continuityParts;
      return (${setFiles})(names, parts, this);
    }`, names);
    if (exceptionDetails || result.value) throw new Error(exceptionDetails?.text ?? result.value);
  } catch {
    throw failed();
  }
}

// A file as base64, in parts of whole bytes.
function partsOf(bytes) {
  const parts = [];
  const size = (CHUNK / 4) * 3;
  for (let at = 0; at < bytes.length; at += size) {
    let text = "";
    for (let from = at; from < Math.min(at + size, bytes.length); from += 0x8000) {
      text += String.fromCharCode(...bytes.subarray(from, Math.min(from + 0x8000, at + size, bytes.length)));
    }
    parts.push(btoa(text));
  }
  return parts;
}

// In the page: put files in a field, as if a person had chosen them. Without `given`, the located element is the field, labels
// it or contains it. Returns what is wrong, or "".
function setFiles(names, parts, given) {
  const element = given ?? globalThis.continuityTarget;
  const field = [element, element?.control, element?.querySelector?.("input[type=file]")].find((one) => one?.type === "file");
  if (!field) return "no_field";
  if (names.length > 1 && !field.multiple) return "one_file";
  const chosen = new DataTransfer();
  for (const [at, { fileName, mediaType }] of names.entries()) {
    const bytes = (parts[at] ?? []).map((part) => Uint8Array.from(atob(part), (character) => character.charCodeAt(0)));
    chosen.items.add(new File(bytes, fileName, { type: mediaType }));
  }
  field.files = chosen.files;
  field.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
  field.dispatchEvent(new Event("change", { bubbles: true }));
  return "";
}

async function fillField(context, params, files) {
  const { tab, pages } = context;
  const names = files.map(({ fileName, mediaType }) => ({ fileName, mediaType }));
  const parts = files.map(({ bytes }) => partsOf(bytes));
  const { result, warnings } = await withInputStrategy(context, async (interactor) => {
    try {
      await interactor.locate(referenceOf(params), "any");
      return await pages.evaluate(tab, setFiles, [names, parts], context.msLeft());
    } catch (error) {
      throw error instanceof ContextLost ? elementNotFound("The page navigated to another document.", { reason: "gone", effect: "none" }) : error;
    }
  }, { byCdp: false, locateMs: LOCATE_MS });
  if (result === "one_file") throw invalidParameter("The field accepts one file only.", { effect: "none" });
  if (result) throw invalidParameter("Real input was not available, and without it only a file field takes files.", { effect: "none" });
  return ["CDP_UNAVAILABLE: real input was not available; synthetic events were used.", ...warnings];
}
