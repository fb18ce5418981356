// Behaviour of the admin pages. All requests go to this server, and every page is readable without this script.
//
// data-live="URL" data-live-ms="2000"  the [data-part] children of this element are refreshed from the URL;
//                                      data-live-ms in the response is the time to the next request, 0 for none
// details[data-src]                    the .cty-lazy child is loaded when the element is opened for the first time
// data-copy="#id", data-zoom, form[data-confirm]
"use strict";

(() => {
  const RETRY_MS = 5000;
  const lastHtml = new Map(); // part name -> HTML that the server sent last

  const partsOf = (root) => new Map([...root.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));

  function hasSelection(part) {
    const selection = document.getSelection();
    return selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  }

  function hasUnsentText(part) {
    const field = document.activeElement;
    return field?.matches("textarea") && field.value && part.contains(field);
  }

  // Keep what the user opened, loaded, typed or scrolled to.
  function keepState(old, fresh) {
    for (const details of fresh.querySelectorAll("details[data-key]")) {
      const before = old.querySelector(`details[data-key="${CSS.escape(details.dataset.key)}"]`);
      if (!before) continue;
      details.open = before.open;
      const loaded = before.querySelector(":scope > .cty-lazy[data-loaded]");
      const placeholder = details.querySelector(":scope > .cty-lazy");
      if (loaded && placeholder) placeholder.replaceWith(loaded);
    }
    for (const field of fresh.querySelectorAll("textarea[data-key]")) { // the text typed so far
      const before = old.querySelector(`textarea[data-key="${CSS.escape(field.dataset.key)}"]`);
      if (before?.value) field.replaceWith(before);
    }
    for (const image of fresh.querySelectorAll("img[src]")) {
      const before = old.querySelector(`img[src="${CSS.escape(image.getAttribute("src"))}"]`);
      if (before) image.replaceWith(before);
    }
    for (const box of fresh.querySelectorAll(".cty-scroll")) {
      const before = old.querySelectorAll(".cty-scroll")[[...fresh.querySelectorAll(".cty-scroll")].indexOf(box)];
      if (before) requestAnimationFrame(() => { box.scrollLeft = before.scrollLeft; });
    }
  }

  function update(root, page) {
    const current = partsOf(root);
    for (const [name, fresh] of partsOf(page)) {
      const part = current.get(name);
      const html = fresh.innerHTML;
      if (!part || lastHtml.get(name) === html || hasSelection(part) || hasUnsentText(part)) continue;
      lastHtml.set(name, html);
      const focused = part.contains(document.activeElement) ? pathTo(part, document.activeElement) : null;
      keepState(part, fresh);
      part.replaceChildren(...fresh.childNodes);
      if (focused) follow(part, focused)?.focus({ preventScroll: true });
    }
  }

  function pathTo(root, element) {
    const path = [];
    for (let node = element; node !== root; node = node.parentElement) path.unshift([...node.parentElement.children].indexOf(node));
    return path;
  }

  const follow = (root, path) => path.reduce((node, index) => node?.children[index], root);

  async function refresh(root) {
    const response = await fetch(root.dataset.live, { credentials: "same-origin", headers: { "X-Requested-With": "fetch" } });
    if (response.redirected || response.status === 403) return location.reload(); // signed out
    if (!response.ok) throw new Error(`status ${response.status}`);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (root.dataset.liveReload) { // an empty page reloads when there is content
      if (page.querySelector(".cty-table tbody tr")) return location.reload();
    } else {
      update(root, page);
    }
    return Number(page.querySelector("[data-live-ms]")?.dataset.liveMs ?? 0);
  }

  function startRefreshing(root) {
    for (const [name, part] of partsOf(root)) lastHtml.set(name, part.innerHTML);
    const schedule = (ms) => setTimeout(async () => {
      if (document.hidden) return schedule(ms);
      try {
        const next = await refresh(root);
        document.body.classList.remove("cty-offline");
        if (next) schedule(next);
      } catch {
        document.body.classList.add("cty-offline");
        schedule(RETRY_MS);
      }
    }, ms);
    const first = Number(root.dataset.liveMs);
    if (first) schedule(first);
  }

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
      container.textContent = `Loading failed (${error.message}). Close and open it to try again.`;
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
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = label; }, 1500);
    }
  });

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("[data-live]").forEach(startRefreshing));
})();
