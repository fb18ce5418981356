// Check whether Enter in a field has begun anything: the page requests something, navigates, or shows something new.
import { now, sleep } from "../clock.js";
import { ContextLost } from "../failures.js";

const BEGIN_MS = 1500;
const ANSWER_MS = 5000;
const POLL_MS = 100;
// Kinds of requests that may send a form; images, styles and beacons do not.
const SENDING = new Set(["Document", "XHR", "Fetch", "WebSocket"]);

// What is alike in requests that a page repeats: all but their numbers.
const signatureOf = (method, url, body = "") => `${method} ${url} ${body}`.replace(/\d+/g, "#");

// Watch a tab while `work` submits a form; returns what `work` returns and whether anything has begun, also if the page does
// not answer any more. Without the debugger nothing is known of requests.
export async function watchedSubmit({ tab, pages, cdp }, text, work) {
  const watch = new SubmitWatch(tab, pages);
  await ignoringFailures(async () => {
    if (cdp.isAttached(tab.id)) await cdp.send(tab.id, "Network.enable", { maxPostDataSize: 65_536 });
    await watch.start();
  });
  try {
    const result = await work();
    return [result, await watch.hasBegun()];
  } finally {
    tab.watch = null;
    if (cdp.isAttached(tab.id)) cdp.send(tab.id, "Network.disable").catch(() => {});
  }
}

class SubmitWatch {
  constructor(tab, pages) {
    Object.assign(this, { tab, pages, before: null, known: new Set(), hasSent: false });
  }

  async start() {
    this.before = await this._shown("watchTexts", { learns: false });
    this.known = new Set((this.before.requested ?? []).map((url) => signatureOf("GET", url)));
    this.tab.watch = this;
  }

  onEvent(method, params) {
    if (method === "Network.requestWillBeSent" && SENDING.has(params.type)) {
      const { request } = params;
      if (!this.known.has(signatureOf(request.method, request.url, request.postData))) this.hasSent = true;
    }
    if (method === "Network.webSocketFrameSent" || method === "Network.webSocketCreated") this.hasSent = true;
  }

  async hasBegun() {
    if (!this.before) return true; // of a tab that is not watched nothing is known
    for (const end = now() + BEGIN_MS; ; await sleep(POLL_MS)) {
      const shown = await ignoringFailures(() => this._shown("shownState"));
      if (!shown) return true;
      const isOther = shown.documents !== this.before.documents || shown.url !== this.before.url;
      if (isOther || this.tab.isLeaving || this.hasSent || shown.touched) return true;
      if (now() >= end) return false;
    }
  }

  // What the page shows; of a page that is being replaced, nothing.
  async _shown(command, args = null) {
    const { documents, isLeaving } = this.tab;
    const url = await this.tab.url();
    if (!isLeaving) {
      try {
        return { documents, url, ...await this.pages.run(this.tab, command, args, ANSWER_MS) };
      } catch (error) {
        if (!(error instanceof ContextLost)) throw error;
        if (command === "shownState") return { documents: documents + 1, url };
      }
    }
    return { documents, url };
  }
}

async function ignoringFailures(work) {
  try {
    return await work();
  } catch {
    return null;
  }
}
