// The content scripts that watch for a person's input and draw the overlay. They run in every frame from the beginning of
// a document; a frame that is in no task's tab does nothing (overlay/frame.js).
const ID = "overlay";
// The watch listens before a frame withholds input: it reports what is withheld.
export const FILES = ["overlay/input_watch.js", "overlay/overlay.js", "overlay/frame.js", "generated/first_listeners.js", "generated/frame_input.js"];

// Register them for the documents to come. Registering them twice changes nothing.
export async function registerContentScripts() {
  const script = {
    id: ID, js: FILES, matches: ["http://*/*", "https://*/*"], allFrames: true, runAt: "document_start", persistAcrossSessions: false,
    matchOriginAsFallback: true,
  };
  const registered = await chrome.scripting.getRegisteredContentScripts({ ids: [ID] });
  if (!registered.length) await chrome.scripting.registerContentScripts([script]).catch(() => {}); // registered meanwhile
}

// Stop running them in new documents.
export async function unregisterContentScripts() {
  await chrome.scripting.unregisterContentScripts({ ids: [ID] }).catch(() => {}); // they are not registered
}

// Run them in the documents that a tab has now. A page on which no extension may run has no overlay.
export async function injectContentScripts(tabId) {
  await chrome.scripting
    .executeScript({ target: { tabId, allFrames: true }, files: FILES, injectImmediately: true })
    .catch(() => {});
}
