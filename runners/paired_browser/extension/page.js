// Call the page scripts (generated/*.js), which are those of the worker's browser, in the isolated world of this extension.
//
// They are injected into a document with the first call there. Where Chrome does not let an extension inject, as in an
// empty page, they run in an isolated world of the debugger instead.
import { now, sleep, within } from "./clock.js";
import { ContextLost, invalidTarget, navigationTimeout, taskTabClosed, TimedOut } from "./failures.js";

const FILES = { continuityAct: "act", continuityRead: "read", continuityDocumentReady: "document_ready", continuityCover: "cover" };
const WORLD = "continuity";
const LOST_MS = 100; // for the answer of a document that was replaced, which may be on its way
const CHECK_MS = 50;
const MAX_DOCUMENTS = 8;
const LONGEST_TIMER_MS = 500; // of a page script, that the service worker runs for it
const CONTEXT_LOST = /frame (with id \S+ )?was removed|no frame with id|no document with id|document (was|is) (replaced|inactive)|navigated|context was destroyed|cannot find context|context with specified id|promise was collected|could not find object|invalid remote object|frame for given id/i;
const TAB_GONE = /no tab with id|tab was closed|target closed/i;
const NOT_INJECTABLE = /cannot access contents|error page|must request permission|missing host permission/i;
const ERROR_PAGE = /error page/i;
const REFUSED_MS = 25;
const FORBIDDEN = /cannot access a|extensions gallery|cannot be scripted|browser's own pages/i;
const EMPTY_DOCUMENT = /^(about:|data:|blob:|chrome-error:)|^$/;

// In the page: call an injected function, after the token of this browser's run was stored for it. `given` is JSON text,
// because Chrome drops null values. An answer that is not there at once is sent as a message: while Chrome waits for the
// promise of an injected script, the document does not finish loading.
//
// Without the debugger, Chrome runs the timers of a tab that is not shown once a second: the service worker's are used.
function callInjected(name, given, token, id, longestTimer) {
  globalThis.continuityToken ??= token;
  globalThis.continuitySleep ??= (ms) => {
    if (!document.hidden || ms > longestTimer) return undefined;
    const inPage = () => scheduler.postTask(() => {}, { delay: ms });
    return chrome.runtime.sendMessage({ type: "pageTimer", ms }).catch(inPage); // the service worker was stopped
  };
  if (!globalThis[name]) return { isMissing: true };
  const calling = (async () => {
    try {
      return { value: await globalThis[name](JSON.parse(given)) };
    } catch (error) {
      return { failure: String(error) };
    }
  })();
  const nextTask = new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => resolve({ isStarted: true });
    channel.port2.postMessage(0);
  });
  return Promise.race([calling, nextTask]).then((first) => {
    if (first.isStarted) calling.then((answer) => chrome.runtime.sendMessage({ type: "pageAnswer", id, answer })).catch(() => {});
    return first;
  });
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
  constructor({ cdp, token, scripting = chrome.scripting, runtime = chrome.runtime }) {
    this.cdp = cdp;
    this.token = token; // a promise of the random prefix of the events between the page's two worlds
    this.scripting = scripting;
    this.waiting = new Map(); // id of a call → {tabId, resolve}: its answer comes as a message
    this.lastId = 0;
    runtime.onMessage.addListener((message, sender, answer) => this._receive(message, sender, answer));
  }

  // Call a function of generated/*.js in a tab's document; `msLeft` is called again and again, so that it can change.
  async call(tab, name, given, msLeft) {
    return this._race(tab, this._call(tab, name, given), msLeft);
  }

  // Run a command of the action script and return its answer.
  async run(tab, command, args, ms) {
    const end = now() + ms;
    let text;
    try {
      text = await this.call(tab, "continuityAct", { command, args: args ?? null }, () => end - now());
    } catch (error) {
      if (!(error instanceof TimedOut)) throw error;
      throw navigationTimeout("The page did not answer: its script hangs.", { url: await tab.url() });
    }
    const answer = JSON.parse(text);
    if ("isStale" in answer) throw new ContextLost("the located element was in the previous document");
    return answer;
  }

  // Run a function of the extension itself in the page's isolated world.
  async evaluate(tab, func, args, ms) {
    const [result] = await Promise.race([within(ms, this._inject(tab, { func, args })), tab.lost]);
    return result;
  }

  // Make the closed shadow roots accessible for which the last answer of the page asked.
  async exposeClosedRoots(tab, ms) {
    const exposing = this._inject(tab, { func: openClosedRoots });
    await within(ms, exposing).catch((error) => {
      if (!(error instanceof ContextLost)) throw error;
    });
  }

  async _race(tab, calling, msLeft) {
    calling.catch(() => {});
    for (;;) {
      const left = msLeft();
      if (left <= 0) throw new TimedOut("the page did not answer in time");
      try {
        return await Promise.race([within(Math.min(left, CHECK_MS), calling), tab.lost]);
      } catch (error) {
        if (!(error instanceof TimedOut)) throw error;
      }
    }
  }

  async _call(tab, name, given) {
    const token = await this.token;
    for (let attempt = 0; attempt < MAX_DOCUMENTS; attempt += 1) {
      const id = this.nextId();
      const commits = tab.commits.length;
      const [injected, documentId] = await this._inject(tab, { func: callInjected, args: [name, JSON.stringify(given ?? null), token, id, LONGEST_TIMER_MS] }, name);
      const answer = injected?.isStarted ? await this._answerOf(tab, id, documentId, commits) : injected;
      if (answer === null || answer === undefined) throw new ContextLost("the document was replaced during the call");
      if ("value" in answer) return answer.value ?? null;
      if ("failure" in answer) throw new Error(`page script: ${answer.failure}`);
      await this._inject(tab, { files: [`generated/${FILES[name]}.js`] });
    }
    throw new ContextLost("the page keeps navigating to other documents");
  }

  nextId() {
    this.lastId += 1;
    return `${this.lastId}:${crypto.randomUUID()}`;
  }

  // The answer that a call in a document sends; it never comes if another document was committed since (`commits` were before).
  _answerOf(tab, id, documentId, commits) {
    return new Promise((resolve, reject) => {
      const lose = () => setTimeout(() => end(reject, new ContextLost("the document was replaced during the call")), LOST_MS);
      const stop = tab.onCommit((committed) => committed !== documentId && lose());
      const end = (settle, value) => {
        stop();
        this.waiting.delete(id);
        settle(value);
      };
      this.waiting.set(id, { tabId: tab.id, resolve: (answer) => end(resolve, answer) });
      tab.lost.catch((error) => end(reject, error));
      const last = tab.commits.slice(commits).at(-1);
      if (last !== undefined && last !== documentId) lose();
    });
  }

  // Returns true if the answer comes later.
  _receive(message, sender, answer) {
    if (message?.type === "pageTimer") {
      sleep(Math.min(Number(message.ms) || 0, LONGEST_TIMER_MS)).then(() => answer(null));
      return true;
    }
    if (message?.type !== "pageAnswer") return false;
    const call = this.waiting.get(message.id);
    if (call && sender.tab?.id === call.tabId) call.resolve(message.answer);
    return false;
  }

  // Returns what the injection returns, and the id of its document.
  async _inject(tab, injection, name = "") {
    try {
      const [answer] = await this.scripting.executeScript({ target: { tabId: tab.id, frameIds: [0] }, injectImmediately: true, ...injection });
      return [answer?.result, answer?.documentId];
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
    if (name && isEmpty && !FORBIDDEN.test(message)) return [await this._callByDebugger(tab, name, JSON.parse(injection.args[1]))];
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
        const script = await (await fetch(chrome.runtime.getURL(`generated/${FILES[name]}.js`))).text();
        const expression = `globalThis.continuityToken = ${JSON.stringify(await this.token)}; ${script}`;
        await this.cdp.send(tab.id, "Runtime.evaluate", { expression, contextId });
      }
      const answer = await this.cdp.send(tab.id, "Runtime.callFunctionOn", {
        functionDeclaration: `(given) => globalThis.${name}(JSON.parse(given))`, arguments: [{ value: JSON.stringify(given) }], executionContextId: contextId,
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
