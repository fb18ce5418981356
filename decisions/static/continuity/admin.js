// Behaviour of the admin pages. All requests go to this server, and every page is readable without this script.
//
// details[data-src]  the .cty-lazy child is loaded when the element is opened for the first time
// data-copy="#id", data-zoom, form[data-confirm]
"use strict";

(() => {
  async function load(details) {
    const container = details.querySelector(":scope > .cty-lazy");
    if (!details.open || !container || container.dataset.loaded || !details.dataset.src) return;
    container.dataset.loaded = "yes";
    try {
      const response = await fetch(details.dataset.src, { credentials: "same-origin" });
      if (!response.ok || response.redirected) throw new Error(`status ${response.status}`);
      container.innerHTML = await response.text(); // rendered and escaped by this server
    } catch (error) {
      delete container.dataset.loaded;
      container.textContent = gettext("Loading failed (%s). Close and open it to try again.").replace("%s", error.message);
    }
  }

  function zoom(link) {
    const dialog = document.createElement("dialog");
    dialog.className = "cty-zoom";
    const image = Object.assign(document.createElement("img"), { src: link.href, alt: link.textContent.trim() });
    dialog.append(image);
    dialog.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }

  document.addEventListener("toggle", (event) => event.target.matches?.("details[data-src]") && load(event.target), true);

  document.addEventListener("error", (event) => event.target.matches?.("img[src*='/artifact/']") && event.target.classList.add("cty-broken"), true);

  document.addEventListener("submit", (event) => {
    const question = event.target.dataset?.confirm;
    if (question && !window.confirm(question)) event.preventDefault();
  });

  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-zoom]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      zoom(link);
    }
    const button = event.target.closest("[data-copy]");
    if (button) {
      await navigator.clipboard.writeText(document.querySelector(button.dataset.copy).textContent.trim());
      const label = button.textContent;
      button.textContent = gettext("Copied");
      setTimeout(() => { button.textContent = label; }, 1500);
    }
  });
})();
