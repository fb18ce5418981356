// Answer the dialogs of a page, as the worker's browser does: a question is dismissed, unless the action answers it.
import { now } from "../clock.js";

const MAX_DIALOGS = 20; // in one action
const ANSWER_MS = 10_000; // how long an answer waits for its question
const MESSAGE_LIMIT = 200;

const noticeOf = (type, message, done) =>
  (type === "alert" ? `The page showed an alert: “${message}”.` : `The page asked “${message}” in a dialog, which was ${done}.`);

export class Dialogs {
  constructor(tab) {
    this.tab = tab;
    this.count = 0;
    this.answer = null;
    this.isLeftToPerson = () => false; // while a person has taken over the page
  }

  // An action begins: the limit counts anew.
  reset() {
    this.count = 0;
  }

  // Set the answer to the next question of this document, if it comes soon: {accept, text?}; null: dismiss it.
  answerNext(answer) {
    this.answer = answer ? { ...answer, givenAt: now() } : null;
  }

  onOpening({ type, message, defaultPrompt }) {
    if (this.isLeftToPerson()) return;
    this.count += 1;
    if (this.count > MAX_DIALOGS) this.tab.endFlood("dialogs", MAX_DIALOGS);
    else if (type === "beforeunload") this._handle({ accept: true }); // dismissing it would prevent the navigation
    else this._answer(type, message.slice(0, MESSAGE_LIMIT), defaultPrompt);
  }

  _answer(type, message, defaultPrompt) {
    let answer = null;
    if (type !== "alert") [answer, this.answer] = [this.answer, null];
    const isAccepted = Boolean(answer?.accept) && now() < answer.givenAt + ANSWER_MS;
    this.tab.addNotice(noticeOf(type, message, isAccepted ? "accepted" : "dismissed"));
    this._handle(isAccepted ? { accept: true, promptText: answer.text ?? defaultPrompt ?? "" } : { accept: false });
  }

  _handle(answer) {
    this.tab.cdp.send(this.tab.id, "Page.handleJavaScriptDialog", answer).catch(() => {});
  }
}
