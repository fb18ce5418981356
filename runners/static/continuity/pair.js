// Offers the pairing link to the extension in this browser, if this site may speak to it. The extension asks the person
// before it connects.
"use strict";

(() => {
  const EXTENSION = "lllnilefilhffgilgeigmjgmhaeckfbl";
  const button = document.querySelector("#pair-here");
  const runtime = globalThis.chrome?.runtime;
  if (!button || !runtime?.sendMessage) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    const [server, ticket] = document.querySelector("#new-secret").textContent.trim().split("#");
    runtime.sendMessage(EXTENSION, { type: "pair", server, ticket }, (answer) => {
      const wasSent = !runtime.lastError && answer?.ok === true;
      document.querySelector("#pair-sent").hidden = !wasSent;
      document.querySelector("#pair-failed").hidden = wasSent;
    });
  });
})();
