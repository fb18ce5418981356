globalThis.continuityDocumentReady = async (given) => {
"use strict";
const ofDocument = (name) => Object.getOwnPropertyDescriptor(Document.prototype, name).get.call(document);
const documentReady = async ({ wholly }) => {
const addListener = EventTarget.prototype.addEventListener;
const isReady = () => ofDocument("readyState") === "complete" || (!wholly && ofDocument("readyState") !== "loading");
if (!isReady()) {
await new Promise((resolve) => {
if (wholly) addListener.call(window, "load", resolve, { once: true });
else addListener.call(document, "DOMContentLoaded", resolve, { once: true });
});
}
const status = performance.getEntriesByType("navigation")[0]?.responseStatus || null;
return JSON.stringify({ title: ofDocument("title").toWellFormed().slice(0, 300), status });
};
return documentReady(given);
};
