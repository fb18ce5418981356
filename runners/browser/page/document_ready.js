// Wait until a document is parsed, or has loaded with all that belongs to it. By itself, for it is asked of every page
// that an agent opens; names of a page's fields shadow what a document has, hence the prototype.
const ofDocument = (name) => Object.getOwnPropertyDescriptor(Document.prototype, name).get.call(document);
const documentReady = async ({ wholly }) => {
  const listenTo = EventTarget.prototype.addEventListener;
  const isThere = () => ofDocument("readyState") === "complete" || (!wholly && ofDocument("readyState") !== "loading");
  if (!isThere()) {
    await new Promise((resolve) => {
      if (wholly) listenTo.call(window, "load", resolve, { once: true });
      else listenTo.call(document, "DOMContentLoaded", resolve, { once: true });
    });
  }
  const status = performance.getEntriesByType("navigation")[0]?.responseStatus || null;
  return JSON.stringify({ title: ofDocument("title").toWellFormed().slice(0, 300), status });
};
