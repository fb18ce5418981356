// Small behaviour of the admin's pages; nothing is fetched from elsewhere, and every page reads without it.
//
// data-live="URL" data-live-ms="2000"  an element whose [data-part] children are kept up to date from that address;
//                                      the answer's own data-live-ms says when to ask again, 0 ends it
// details[data-src]                    its .cty-lazy child is fetched when it is first opened
// data-copy="#id", data-zoom, form[data-confirm]
"use strict";

(() => {
  const RETRY_MS = 5000;
  const seen = new Map(); // part name -> HTML as the server last sent it

  const partsOf = (root) => new Map([...root.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));

  function isBeingRead(part) {
    const selection = document.getSelection();
    return selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  }

  function isBeingWritten(part) {
    const field = document.activeElement;
    return field?.matches("textarea") && field.value && part.contains(field);
  }

  // What a person opened, loaded or is looking at stays as it is.
  function keepState(old, fresh) {
    for (const details of fresh.querySelectorAll("details[data-key]")) {
      const before = old.querySelector(`details[data-key="${CSS.escape(details.dataset.key)}"]`);
      if (!before) continue;
      details.open = before.open;
      const loaded = before.querySelector(":scope > .cty-lazy[data-loaded]");
      const place = details.querySelector(":scope > .cty-lazy");
      if (loaded && place) place.replaceWith(loaded);
    }
    for (const field of fresh.querySelectorAll("textarea[data-key]")) { // what was written so far
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

  function putIn(root, answer) {
    const current = partsOf(root);
    for (const [name, fresh] of partsOf(answer)) {
      const part = current.get(name);
      const html = fresh.innerHTML;
      if (!part || seen.get(name) === html || isBeingRead(part) || isBeingWritten(part)) continue;
      seen.set(name, html);
      const focused = part.contains(document.activeElement) ? pathTo(part, document.activeElement) : null;
      keepState(part, fresh);
      part.replaceChildren(...fresh.childNodes);
      if (focused) follow(part, focused)?.focus({ preventScroll: true });
    }
  }

  function pathTo(root, element) {
    const path = [];
    for (let at = element; at !== root; at = at.parentElement) path.unshift([...at.parentElement.children].indexOf(at));
    return path;
  }

  const follow = (root, path) => path.reduce((at, index) => at?.children[index], root);

  async function refresh(root) {
    const response = await fetch(root.dataset.live, { credentials: "same-origin", headers: { "X-Requested-With": "fetch" } });
    if (response.redirected || response.status === 403) return location.reload(); // signed out
    if (!response.ok) throw new Error(`status ${response.status}`);
    const answer = new DOMParser().parseFromString(await response.text(), "text/html");
    if (root.dataset.liveReload) { // an empty page waits for its first content
      if (answer.querySelector(".cty-table tbody tr")) return location.reload();
    } else {
      putIn(root, answer);
    }
    return Number(answer.querySelector("[data-live-ms]")?.dataset.liveMs ?? 0);
  }

  function keepFresh(root) {
    for (const [name, part] of partsOf(root)) seen.set(name, part.innerHTML);
    const later = (ms) => setTimeout(async () => {
      if (document.hidden) return later(ms);
      try {
        const next = await refresh(root);
        document.body.classList.remove("cty-offline");
        if (next) later(next);
      } catch {
        document.body.classList.add("cty-offline");
        later(RETRY_MS);
      }
    }, ms);
    const first = Number(root.dataset.liveMs);
    if (first) later(first);
  }

  async function load(details) {
    const place = details.querySelector(":scope > .cty-lazy");
    if (!details.open || !place || place.dataset.loaded || !details.dataset.src) return;
    place.dataset.loaded = "yes";
    try {
      const response = await fetch(details.dataset.src, { credentials: "same-origin" });
      if (!response.ok || response.redirected) throw new Error(`status ${response.status}`);
      place.innerHTML = await response.text(); // rendered and escaped by our own server
    } catch (error) {
      delete place.dataset.loaded;
      place.textContent = `This could not be loaded (${error.message}); close and open it to try again.`;
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

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("[data-live]").forEach(keepFresh));
})();
