// The actions whose output is too large for a message: browser_screenshot, browser_get_html, browser_readability_extract.
// The output is sent to the address that came with the action.
import { now, within } from "../clock.js";
import { ContextLost, elementNotFound, invalidParameter, navigationTimeout, readabilityTooLarge, uploadFailed } from "../failures.js";
import { markdownOf, readPage } from "../reading/page_text.js";
import { takeScreenshot } from "../reading/screenshot.js";
import { resultOf } from "./context.js";

const INLINE_LIMIT_BYTES = 262_144;
const TEXT_LIMIT_BYTES = 2_097_152;
const MAX_BYTES = 26_214_400;
const MAX_DOCUMENTS = 3;

export async function screenshot(context, { tabId, fullPage = false, numbers = false, longEdge = null }) {
  const tab = await context.useTab(tabId, { settled: true });
  await context.cdp.attach(tabId);
  const picture = await context.withoutOverlay(tabId, () => takeScreenshot(context, { fullPage, numbers, longEdge }, context.end));
  const url = await tab.url();
  context.checkAddress(url);
  if (!fullPage) tab.pictureScale = picture.scale;
  const upload = await store(context, picture.data, "screenshot.jpg", "image/jpeg");
  return resultOf({ upload, url, width: picture.width, height: picture.height, warnings: picture.warnings });
}

export async function getHtml(context, { tabId, xpath = null }) {
  const tab = await context.useTab(tabId, { settled: true });
  const html = await context.withoutOverlay(tabId, () => markup(context, xpath));
  const url = await tab.url();
  context.checkAddress(url);
  return { upload: await store(context, new TextEncoder().encode(html), "page.html", "text/html"), url };
}

async function markup(context, xpath) {
  const { tab, pages } = context;
  for (let visit = 0; visit < MAX_DOCUMENTS; visit += 1) {
    try {
      const answer = await pages.run(tab, "markup", { xpath, maxLength: MAX_BYTES }, context.msLeft());
      if (answer.problem === "bad_xpath") throw invalidParameter(`xpath: ${xpath} is not a valid XPath of elements.`);
      if (answer.problem) {
        throw elementNotFound(`No element on the page matches the XPath ${xpath}.`, { reason: answer.problem, xpath, url: await tab.url() });
      }
      if (answer.length) throw tooLarge("page.html", answer.length, MAX_BYTES);
      return answer.html;
    } catch (error) {
      if (!(error instanceof ContextLost)) throw error;
    }
  }
  throw navigationTimeout("The page keeps navigating to other documents.", { url: await tab.url() });
}

export async function readabilityExtract(context, { tabId }) {
  await context.useTab(tabId, { settled: true });
  const page = await context.withoutOverlay(tabId, () => readPage(context, TEXT_LIMIT_BYTES + 1, context.end));
  context.checkAddress(page.url);
  const markdown = markdownOf(page.content.sections);
  const data = new TextEncoder().encode(markdown);
  if (page.content.truncated || data.length > TEXT_LIMIT_BYTES) {
    throw readabilityTooLarge(`The page's text has more than ${TEXT_LIMIT_BYTES} bytes.`, { limitBytes: TEXT_LIMIT_BYTES });
  }
  const { title, pageType, warnings } = page;
  const result = { title: title || undefined, pageType, contentLengthBytes: data.length, truncated: false, warnings };
  if (data.length < INLINE_LIMIT_BYTES) return resultOf({ ...result, markdown });
  return resultOf({ ...result, truncated: true, upload: await store(context, data, "page.md", "text/markdown") });
}

// Send bytes to the upload's address; returns {sizeBytes, sha256, mimeType}.
async function store(context, data, name, mimeType) {
  const { upload, connection } = context;
  if (!upload) throw uploadFailed(`${name} could not be stored: the action came without an address.`, { reason: "no_upload" });
  const limit = Math.min(MAX_BYTES, upload.maxBytes ?? MAX_BYTES);
  if (data.length > limit) throw tooLarge(name, data.length, limit);
  let response;
  try {
    const sending = fetch(new URL(upload.url, connection.server), {
      method: upload.method ?? "PUT", headers: { ...upload.headers, "Content-Type": mimeType }, body: data, credentials: "omit",
      redirect: "error",
    });
    response = await within(Math.max(100, context.deadline - now()), sending);
  } catch {
    throw uploadFailed(`${name} could not be stored.`, { reason: "unreachable" });
  }
  if (!response.ok) throw uploadFailed(`${name} could not be stored.`, { reason: "refused", httpStatus: response.status });
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", data));
  const sha256 = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { sizeBytes: data.length, sha256, mimeType };
}

const tooLarge = (name, size, limit) =>
  uploadFailed(`${name} has at least ${size} bytes; the limit is ${limit}.`, { reason: "too_large", limitBytes: limit });
