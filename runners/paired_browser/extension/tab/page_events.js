// What a page did by itself since its last observation: dialogs, downloads, windows, errors of its scripts and requests.
const KEPT = 5; // of each kind, the newest
const TEXT_LIMIT = 200;

const textOf = ({ value, unserializableValue, description, type }) =>
  String(value ?? unserializableValue ?? description ?? type);

export class PageEvents {
  constructor() {
    this.texts = {};
  }

  // Add an event; of many of a kind, the newest are kept, the same text once.
  add(kind, text) {
    const line = text.split(/\s+/).filter(Boolean).join(" ").slice(0, TEXT_LIMIT);
    const others = (this.texts[kind] ?? []).filter((other) => other !== line);
    this.texts[kind] = [...others, line].slice(-KEPT);
  }

  // Return the texts since the last call, by kind; kinds without any are left out.
  take() {
    const taken = this.texts;
    this.texts = {};
    return taken;
  }

  onEvent(method, params) {
    KINDS[method]?.(this, params);
  }
}

const KINDS = {
  "Page.javascriptDialogOpening": (events, { type, message }) => {
    if (type !== "beforeunload") events.add("dialogs", `${type}: ${message}`);
  },
  "Page.downloadWillBegin": (events, { suggestedFilename, url }) => events.add("downloads", suggestedFilename || url),
  "Page.windowOpen": (events, { url }) => events.add("windows", url || "about:blank"),
  "Runtime.consoleAPICalled": (events, { type, args }) => {
    if (type === "error") events.add("consoleErrors", args.map(textOf).join(" "));
  },
  "Runtime.exceptionThrown": (events, { exceptionDetails: { exception, text } }) => {
    const message = (exception?.description ?? textOf(exception ?? { value: text })).split("\n")[0];
    events.add("consoleErrors", message.replace(/^(Uncaught )?([A-Z]\w*)?Error: /, ""));
  },
  "Log.entryAdded": (events, { entry }) => {
    const isIcon = /\/favicon\.ico$/.test(entry.url ?? ""); // requested by the browser, not by the page
    if (entry.level === "error" && entry.source === "network" && !isIcon) events.add("consoleErrors", `${entry.text} ${entry.url ?? ""}`);
  },
};
