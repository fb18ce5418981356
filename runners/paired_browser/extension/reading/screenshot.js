// A picture of a tab by the debugger, also while another tab is shown; secret fields are covered meanwhile.
import { now, within } from "../clock.js";
import { cdpLost, ContextLost, navigationTimeout, TimedOut } from "../failures.js";

const COVER_MS = 2000;
const MAX_HEIGHT = 16_000; // pixels
const QUALITY = 60;
const WITHOUT_SIZE = new Set([0xc4, 0xc8, 0xcc]); // of the JPEG segments 0xC0 to 0xCF, which contain width and height

// Returns {data, width, height, scale, warnings}: a JPEG, its size in pixels, and pixels per CSS pixel.
export async function takeScreenshot(context, { fullPage, numbers, longEdge }, end) {
  const { tab, pages, cdp } = context;
  try {
    const { clip, warnings, cssWidth } = await clipOf(context, { fullPage, longEdge }, end);
    const msLeft = () => Math.min(COVER_MS, end - now());
    const hasCovered = await pages.call(tab, "continuityCover", true, msLeft);
    try {
      if (numbers) await pages.run(tab, "drawNumbers", null, Math.min(COVER_MS, Math.max(100, end - now())));
      const options = { format: "jpeg", quality: QUALITY, optimizeForSpeed: true, captureBeyondViewport: fullPage, clip };
      const answer = await Promise.race([within(Math.max(100, end - now()), cdp.send(tab.id, "Page.captureScreenshot", options)), tab.lost]);
      const data = Uint8Array.from(atob(answer.data), (character) => character.charCodeAt(0));
      const [width, height] = jpegSize(data);
      return { data, width, height, scale: width / cssWidth, warnings };
    } finally {
      if (numbers) await pages.run(tab, "eraseNumbers", null, COVER_MS).catch(() => {});
      const until = now() + COVER_MS;
      if (hasCovered) await pages.call(tab, "continuityCover", false, () => until - now()).catch(() => {});
    }
  } catch (error) {
    if (error instanceof TimedOut || error instanceof ContextLost) {
      throw navigationTimeout("No screenshot could be taken: the page kept changing.", { url: await tab.url() });
    }
    if (error.code) throw error;
    throw cdpLost("The browser gave no picture of the page.", { effect: "none" });
  }
}

// The part of the page to show, scaled so that a pixel of the picture is a CSS pixel, or more.
async function clipOf({ tab, cdp }, { fullPage, longEdge }, end) {
  const metrics = await within(end - now(), cdp.send(tab.id, "Page.getLayoutMetrics"));
  const { cssVisualViewport: view, cssLayoutViewport: layout, cssContentSize: content, layoutViewport: device } = metrics;
  const ratio = device.clientWidth / layout.clientWidth || 1;
  const area = { x: view.pageX, y: view.pageY, width: view.clientWidth, height: view.clientHeight };
  const warnings = [];
  if (fullPage) {
    const whole = Math.max(1, content.height);
    Object.assign(area, { x: 0, y: 0, width: layout.clientWidth, height: Math.min(whole, MAX_HEIGHT) });
    if (whole > MAX_HEIGHT) warnings.push(`The screenshot ends at ${MAX_HEIGHT} of ${Math.round(whole)} pixels.`);
  }
  const scale = longEdge ? Math.min(1, longEdge / Math.max(area.width, area.height)) : 1;
  return { clip: { ...area, scale: scale / ratio }, warnings, cssWidth: area.width };
}

// Width and height of a JPEG in pixels.
export function jpegSize(jpeg) {
  const view = new DataView(jpeg.buffer, jpeg.byteOffset, jpeg.byteLength);
  for (let offset = 2; offset < view.byteLength;) {
    const marker = view.getUint8(offset + 1);
    if (marker >= 0xc0 && marker <= 0xcf && !WITHOUT_SIZE.has(marker)) return [view.getUint16(offset + 7), view.getUint16(offset + 5)];
    offset += 2 + view.getUint16(offset + 2);
  }
  throw new Error("not a JPEG");
}
