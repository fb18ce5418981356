// Call the page scripts (page/*.js), which are those of the worker's own browser, in the isolated world of this extension.
//
// They are injected into a document with the first call there. Where Chrome does not let an extension inject, as in an
// empty page, they run in an isolated world of the debugger instead.
import { now, sleep, within } from "./clock.js";
import { ContextLost, invalidTarget, navigationTimeout, taskTabClosed, TimedOut } from "./failures.js";

const FILES = { continuityAct: "act", continuityRead: "read", continuityDocumentReady: "document_ready", continuityCover: "cover" };
const WORLD = "continuity";
const LOST_MS = 1000; // for the answer after the document was replaced: it may never come
const MAX_DOCUMENTS = 8;
const CONTEXT_LOST = /frame (with id \S+ )?was removed|no frame with id|no document with id|document (was|is) (replaced|inactive)|navigated|context was destroyed|cannot find context|context with specified id|promise was collected|could not find object|invalid remote object|frame for given id/i;
const TAB_GONE = /no tab with id|tab was closed|target closed/i;
const NOT_INJECTABLE = /cannot access contents|error page|must request permission|missing host permission/i;
const ERROR_PAGE = /error page/i;
const REFUSED_MS = 25;
const FORBIDDEN = /cannot access a|extensions gallery|cannot be scripted|browser's own pages/i;
const EMPTY_DOCUMENT = /^(about:|data:|blob:|chrome-error:)|^$/;

// In the page: call an injected function, after the token of this browser's run was stored for it.
function callInjected(name, given, token) {
  globalThis.continuityToken ??= token;
  if (!globalThis[name]) return { isMissing: true };
  return (async () => {
    try {
      return { value: await globalThis[name](given) };
    } catch (error) {
      return { failure: String(error) };
    }
  })();
}

// In the page: give the scripts access to the closed shadow roots of the elements for which they asked.
function openClosedRoots() {
  const stored = (globalThis.continuityClosed ??= new WeakMap());
  for (const host of globalThis.continuityClosedHosts ?? []) {
    const root = chrome.dom.openOrClosedShadowRoot(host);
    if (root && !host.shadowRoot) stored.set(host, root);
  }
}

export class Pages {
  constructor({ cdp, token, scripting = chrome.scripting }) {
    this.cdp = cdp;
    this.token = token; // a promise of the random prefix of the events between the page's two worlds
    this.scripting = scripting;
  }

  // Call a function of page/*.js in a tab's document; `msLeft` is called again and again, so that it can change.
  async call(tab, name, given, msLeft) {
    return this._race(tab, this._call(tab, name, given), msLeft);
  }

  // Run a command of the action script and return its answer.
  async run(tab, command, args, ms) {
    const [end, { documents }] = [now() + ms, tab];
    const msLeft = () => Math.min(end, tab.documents === documents ? Infinity : tab.shownSince + LOST_MS) - now();
    let text;
    try {
      text = await this.call(tab, "continuityAct", { command, args: args ?? null }, msLeft);
    } catch (error) {
      if (!(error instanceof TimedOut)) throw error;
      if (tab.documents !== documents) throw new ContextLost("the document was replaced before it answered");
      throw navigationTimeout("The page did not answer: its script hangs.", { url: await tab.url() });
    }
    const answer = JSON.parse(text);
    if ("isStale" in answer) throw new ContextLost("the located element was in the previous document");
    return answer;
  }

  // Run a function of the extension itself in the page's isolated world.
  async evaluate(tab, func, args, ms) {
    return Promise.race([within(ms, this._inject(tab, { func, args })), tab.lost]);
  }

  // Make the closed shadow roots accessible for which the last answer of the page asked.
  async exposeClosedRoots(tab, ms) {
    const exposing = this._inject(tab, { func: openClosedRoots });
    await within(ms, exposing).catch((error) => {
      if (!(error instanceof ContextLost)) throw error;
    });
  }

  // The addresses of all frames of a tab that can be read.
  async frameAddresses(tab, ms) {
    const found = this.scripting.executeScript({ target: { tabId: tab.id, allFrames: true }, injectImmediately: true, func: () => location.href });
    try {
      return (await within(ms, found)).map(({ result }) => result).filter(Boolean);
    } catch (error) {
      if (error instanceof TimedOut) throw error;
      return []; // a page that takes no scripts
    }
  }

  async _race(tab, calling, msLeft) {
    calling.catch(() => {});
    for (;;) {
      const left = msLeft();
      if (left <= 0) throw new TimedOut("the page did not answer in time");
      try {
        return await Promise.race([within(Math.min(left, 250), calling), tab.lost]);
      } catch (error) {
        if (!(error instanceof TimedOut)) throw error;
      }
    }
  }

  async _call(tab, name, given) {
    const token = await this.token;
    for (let attempt = 0; attempt < MAX_DOCUMENTS; attempt += 1) {
      const answer = await this._inject(tab, { func: callInjected, args: [name, given ?? null, token] }, name);
      if (answer === null || answer === undefined) throw new ContextLost("the document was replaced during the call");
      if ("value" in answer) return answer.value ?? null;
      if ("failure" in answer) throw new Error(`page script: ${answer.failure}`);
      await this._inject(tab, { files: [`page/${FILES[name]}.js`] });
    }
    throw new ContextLost("the page keeps navigating to other documents");
  }

  async _inject(tab, injection, name = "") {
    try {
      const [answer] = await this.scripting.executeScript({ target: { tabId: tab.id, frameIds: [0] }, injectImmediately: true, ...injection });
      return answer?.result;
    } catch (error) {
      const { message } = error;
      if (TAB_GONE.test(message)) throw taskTabClosed("The task's tab was closed, or its page died.", { tabId: tab.id });
      if (CONTEXT_LOST.test(message)) throw new ContextLost(message);
      if (NOT_INJECTABLE.test(message) || FORBIDDEN.test(message)) return this._refused(tab, message, injection, name);
      throw error;
    }
  }

  // Chrome lets no extension inject into this document. While another document is being shown, it may say so of that.
  async _refused(tab, message, injection, name) {
    const url = await tab.url();
    const isEmpty = EMPTY_DOCUMENT.test(url) || tab.isErrorPage || ERROR_PAGE.test(message);
    if (name && isEmpty && !FORBIDDEN.test(message)) return this._callByDebugger(tab, name, injection.args[1]);
    if (/^https?:/.test(url) && NOT_INJECTABLE.test(message) && tab.countRefusal() <= MAX_DOCUMENTS) {
      await sleep(REFUSED_MS);
      throw new ContextLost(message);
    }
    throw invalidTarget("The browser lets no extension act on this page.");
  }

  async _callByDebugger(tab, name, given) {
    try {
      await this.cdp.attach(tab.id);
      const { frameTree } = await this.cdp.send(tab.id, "Page.getFrameTree");
      const world = await this.cdp.send(tab.id, "Page.createIsolatedWorld", { frameId: frameTree.frame.id, worldName: WORLD });
      const contextId = world.executionContextId;
      const { result } = await this.cdp.send(tab.id, "Runtime.evaluate", { expression: `"${name}" in globalThis`, contextId });
      if (!result.value) {
        const script = await (await fetch(chrome.runtime.getURL(`page/${FILES[name]}.js`))).text();
        const expression = `globalThis.continuityToken = ${JSON.stringify(await this.token)}; ${script}`;
        await this.cdp.send(tab.id, "Runtime.evaluate", { expression, contextId });
      }
      const answer = await this.cdp.send(tab.id, "Runtime.callFunctionOn", {
        functionDeclaration: `(given) => globalThis.${name}(given)`, arguments: [{ value: given }], executionContextId: contextId,
        awaitPromise: true, returnByValue: true,
      });
      if (answer.exceptionDetails) return { failure: String(answer.exceptionDetails.exception?.description ?? answer.exceptionDetails.text) };
      return { value: answer.result.value };
    } catch (error) {
      if (CONTEXT_LOST.test(error.message)) throw new ContextLost(error.message);
      throw error;
    }
  }
}
