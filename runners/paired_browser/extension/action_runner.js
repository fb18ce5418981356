// Perform the actions that the server sends: each actionId once, one at a time in a task, within its time.
import { ACTIONS } from "./actions/catalogue.js";
import { ActionContext } from "./actions/context.js";
import { now, within } from "./clock.js";
import { ActionFailed, broken, cdpLost, ContextLost, elementNotFound, navigationTimeout, taskTabClosed, TimedOut } from "./failures.js";

const ANSWER_MS = 100; // of the action's time, for the way of its result to the server
const RESULT_ACK_MS = 10_000;
const ID = /^[\x21-\x7e]{1,128}$/;
const DEFAULT_MS = 20_000;
const TAB_GONE = /no tab with (given )?id|tab was closed/i;
const DETACHED = /detached|not attached|target closed/i;

export class ActionRunner {
  // `ui`: {actionStarted, actionEnded, isTakenOver, withoutOverlay, withholdFrames, requireWatch}; `isOwn(url)` recognizes the product's own pages.
  constructor({ connection, records, tasks, cdp, pages, ui, isOwn, actions = ACTIONS }) {
    Object.assign(this, { connection, records, tasks, ui, actions });
    this.parts = { connection, tasks, cdp, pages, isOwn, withoutOverlay: ui.withoutOverlay, withholdFrames: ui.withholdFrames, requireWatch: ui.requireWatch };
    this.running = new Map(); // taskId → actionId
    this.accepted = new Set(); // the actionIds that are looked up or performed, until their result is stored
    connection.on("browser_action", (message) => this.receive(message));
    connection.onActive(() => this.resend());
  }

  // Acknowledge an action, perform it unless that was done before, and send its result.
  async receive(message) {
    const problem = problemOf(message, this.actions);
    if (problem) {
      this._ack(message, { code: "BAD_REQUEST", message: problem });
      return;
    }
    const { actionId } = message;
    if (this.accepted.has(actionId)) {
      this._ack(message);
      return;
    }
    this.accepted.add(actionId); // before anything is awaited: the same action may arrive again meanwhile
    try {
      await this._receiveOnce(message);
    } finally {
      this.accepted.delete(actionId);
    }
  }

  async _receiveOnce(message) {
    const { actionId, taskId } = message;
    await this.tasks.ready;
    const record = await this.records.get(actionId);
    if (record?.state === "finished") await this._answerAgain(message, record.result);
    else if (record) await this._answerUnknown(message);
    else if (this.running.has(taskId)) this._ack(message, { code: "TASK_BUSY", message: "Another action of this task is running." });
    else if (this.ui.isTakenOver(taskId)) this._ack(message, { code: "TASK_BUSY", message: "A person has taken over the page." });
    else await this._perform(message);
  }

  // Send the results again that the server has not acknowledged.
  async resend() {
    for (const result of await this.records.unsent()) await this._send(result);
  }

  async _perform(message) {
    const { actionId, taskId } = message;
    this.running.set(taskId, actionId);
    try {
      this._ack(message);
      await this.records.start(actionId, taskId);
      const result = await this._resultOf(message);
      const storing = this.records.finish(actionId, taskId, result);
      this.running.delete(taskId);
      await Promise.all([storing.then(() => this.accepted.delete(actionId)), this._send(result)]);
    } finally {
      this.running.delete(taskId);
      this.tasks.rest(taskId);
    }
  }

  async _resultOf(message) {
    const { actionId, taskId, action, timeoutMs = DEFAULT_MS } = message;
    const [[name, params]] = Object.entries(action);
    const context = new ActionContext(this.parts, message, now() + timeoutMs - ANSWER_MS);
    this.ui.actionStarted(taskId, params.tabId);
    const about = { type: "browser_action_result", actionId, taskId };
    try {
      const { warnings, ...result } = await within(context.deadline - now(), this.actions[name](context, params));
      const pageOrigins = await context.pageOrigins();
      return { ...about, tabId: params.tabId ?? context.tab?.id, status: "success", result, pageOrigins, ...(warnings ? { warnings } : {}) };
    } catch (error) {
      const failure = await context.failureOfTab(failureOf(error));
      return { ...about, tabId: params.tabId, status: "error", error: failure.asError(), pageOrigins: await context.pageOrigins() };
    } finally {
      context.finish();
      this.ui.actionEnded(taskId);
    }
  }

  // It was begun by a service worker that has died since: it may have had its effect, and is not repeated.
  async _answerUnknown(message) {
    this._ack(message);
    const { actionId, taskId } = message;
    const error = cdpLost("The browser's extension stopped during the action.", { effect: "unknown" }).asError();
    const result = { type: "browser_action_result", actionId, taskId, status: "error", error };
    await this.records.finish(actionId, taskId, result);
    await this._send(result);
  }

  async _answerAgain(message, result) {
    this._ack(message);
    await this._send(result);
  }

  // An ack ok:false is final too: the server refuses the result, and would again.
  async _send(result) {
    try {
      await this.connection.request(result, RESULT_ACK_MS);
      await this.records.markSent(result.actionId);
    } catch (error) {
      if (error instanceof RangeError) await this._replaceTooLarge(result);
    }
  }

  async _replaceTooLarge({ type, actionId, taskId }) {
    const error = broken("The result is too large for a message; ask for less, such as the scope viewport.").asError();
    const result = { type, actionId, taskId, status: "error", error };
    await this.records.finish(actionId, taskId, result);
    await this._send(result);
  }

  _ack({ id }, error = null) {
    this.connection.send({ type: "ack", id, ok: error === null, ...(error ? { error } : {}) });
  }
}

// What is wrong with a message, or "".
function problemOf({ id, actionId, taskId, action }, actions) {
  if (![id, actionId, taskId].every((one) => typeof one === "string" && ID.test(one))) return "id, actionId and taskId are required.";
  const names = action && typeof action === "object" ? Object.keys(action) : [];
  if (names.length !== 1) return "action: give one action.";
  if (!Object.hasOwn(actions, names[0])) return `action: there is no ${names[0].slice(0, 100)}.`;
  const params = action[names[0]];
  return params && typeof params === "object" && !Array.isArray(params) ? "" : "action: give its parameters as an object.";
}

export function failureOf(error) {
  if (error instanceof ActionFailed) return error;
  if (error instanceof TimedOut) return navigationTimeout("The action did not end in its time.", { effect: "unknown" });
  if (error instanceof ContextLost) return elementNotFound("The page navigated to another document.", { reason: "gone" });
  const message = String(error?.message ?? error);
  if (TAB_GONE.test(message)) return taskTabClosed("The task's tab was closed, or its page died.");
  if (DETACHED.test(message)) return cdpLost("The connection to the page broke.", { effect: "unknown" });
  console.error(error);
  return broken("The extension failed; its service worker's console says more.", { reason: message.slice(0, 200) });
}
