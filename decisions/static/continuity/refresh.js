// Keeps pages up to date without loading them anew: focus, selection, scroll position and typed text stay.
//
// data-live="URL" data-live-ms="2000"  the [data-part] elements of this element are refreshed from the URL; data-live-ms in
//                                      the response is the time to the next request, 0 for none
// data-live-topics="run:ID decision"   what the element shows (see changes.js): it is refreshed when that changes, at most
//                                      every data-live-ms, and at least every data-live-max-ms
// a list of Django's admin             is refreshed when rows of its model change, and every minute
"use strict";

(() => {
  const RETRY_MS = 5000;
  const MAX_MS = 30000;
  const LIST_MS = 3000;
  const LIST_MAX_MS = 60000;
  const NEW_MS = 2500; // how long a new row is marked
  const lastHtml = new Map(); // part name -> HTML that the server sent last
  const served = new WeakMap(); // cell of a list -> HTML that the server sent last; other scripts change what is shown
  const lives = [];
  const lists = [];
  let isStreaming = false;
  let wasStreaming = false;

  const partsOf = (root) => new Map([...root.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));

  // --- what the user does -----------------------------------------------------------------------

  function hasSelection(part) {
    const selection = document.getSelection();
    return selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  }

  function hasUnsentText(part) {
    const field = document.activeElement;
    return field?.matches("textarea, input:not([type=checkbox])") && field.value && part.contains(field);
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

  function pathTo(root, element) {
    const path = [];
    for (let node = element; node !== root; node = node.parentElement) path.unshift([...node.parentElement.children].indexOf(node));
    return path;
  }

  const follow = (root, path) => path.reduce((node, index) => node?.children[index], root);

  function replaceContent(old, fresh) {
    const focused = old.contains(document.activeElement) ? pathTo(old, document.activeElement) : null;
    keepState(old, fresh);
    old.replaceChildren(...fresh.childNodes);
    if (focused) follow(old, focused)?.focus({ preventScroll: true });
  }

  // --- parts ------------------------------------------------------------------------------------

  function updateParts(root, page) {
    const current = partsOf(root);
    for (const [name, fresh] of partsOf(page)) {
      const part = current.get(name);
      const html = fresh.innerHTML;
      if (!part || lastHtml.get(name) === html || hasSelection(part) || hasUnsentText(part)) continue;
      lastHtml.set(name, html);
      replaceContent(part, fresh);
    }
  }

  // --- lists ------------------------------------------------------------------------------------

  const table = (root) => root.querySelector("#result_list");
  const rowsOf = (list) => [...list.tBodies];
  const isSelected = (row) => row.querySelector(".action-select")?.checked;
  const isHeader = (row) => !row.querySelector("td, tbody th, a, .action-select");

  // What identifies a row: its checkbox, else the address of its page, else its place.
  function keyOf(row, index) {
    const box = row.querySelector(".action-select");
    return box?.value ?? row.querySelector("a[href]")?.getAttribute("href") ?? `row ${index}`;
  }

  function updateList(page) {
    updateParts(document, page);
    const [list, fresh] = [table(document), table(page)];
    if (!list || !fresh) { // the first row came, or the last one went
      if (Boolean(list) !== Boolean(fresh) && !hasUnsentText(document.body)) location.reload();
      return;
    }
    const old = new Map(rowsOf(list).map((row, index) => [keyOf(row, index), row]));
    const freshRows = rowsOf(fresh).filter((row) => !isHeader(row));
    const isHeld = [...old.values()].some(isSelected); // a selection is a choice among these rows: none comes or goes
    let added = 0;
    let last = null;
    freshRows.forEach((row, index) => {
      const key = keyOf(row, index);
      const known = old.get(key);
      if (known) {
        updateRow(known, row, isHeld);
        old.delete(key);
        last = known;
      } else if (isHeld) {
        added += 1;
      } else {
        row.classList.add("cty-new");
        setTimeout(() => row.classList.remove("cty-new"), NEW_MS);
        insertAfter(list, last, row);
        last = row;
      }
    });
    if (!isHeld) for (const row of old.values()) if (!row.contains(document.activeElement)) row.remove();
    showAdded(list, added);
    document.querySelector(".cty-pages")?.replaceWith(page.querySelector(".cty-pages") ?? "");
    countSelected(list);
  }

  function insertAfter(list, last, row) {
    if (last) last.after(row);
    else if (list.tBodies[0]) list.tBodies[0].before(row);
    else list.append(row);
  }

  function updateRow(known, fresh, isHeld) {
    if (!isHeld && known.className !== fresh.className && !known.classList.contains("cty-new")) known.className = fresh.className;
    const [before, after] = [known.rows[0]?.cells ?? [], fresh.rows[0]?.cells ?? []];
    if (before.length !== after.length) return replaceContent(known, fresh);
    [...after].forEach((cell, index) => {
      const shown = before[index];
      const html = cell.innerHTML;
      if (cell.querySelector(".action-select") || served.get(shown) === html || hasSelection(shown)) return;
      served.set(shown, html);
      replaceContent(shown, cell);
    });
  }

  // While rows are selected, new ones are announced instead of inserted.
  function showAdded(list, number) {
    let note = document.querySelector(".cty-added");
    if (!number) return note?.remove();
    if (!note) {
      note = Object.assign(document.createElement("p"), { className: "cty-added" });
      note.setAttribute("role", "status");
      list.closest("form").before(note);
    }
    note.textContent = `${ngettext("%s new row", "%s new rows", number).replace("%s", number)} · ${gettext("shown when no row is selected")}`;
  }

  // Django's own script knows the rows of the first load only.
  function countSelected(list) {
    const boxes = [...list.querySelectorAll(".action-select")];
    const number = boxes.filter((box) => box.checked).length;
    const [counter, all] = [document.querySelector("span.action-counter"), document.getElementById("action-toggle")];
    if (counter && window.interpolate) {
      counter.textContent = interpolate(ngettext("%(sel)s of %(cnt)s selected", "%(sel)s of %(cnt)s selected", number), { sel: number, cnt: boxes.length }, true);
    }
    if (all) all.checked = boxes.length > 0 && number === boxes.length;
  }

  function followSelection(list) {
    list.addEventListener("change", (event) => {
      if (event.target.id === "action-toggle") {
        for (const box of list.querySelectorAll(".action-select")) box.checked = event.target.checked;
      } else if (!event.target.classList.contains("action-select")) {
        return;
      }
      for (const box of list.querySelectorAll(".action-select")) box.closest("tr").classList.toggle("selected", box.checked);
      countSelected(list);
      if (document.querySelector(".cty-added") && ![...list.tBodies].some(isSelected)) lists.forEach((live) => live.markDirty());
    });
  }

  // --- when -------------------------------------------------------------------------------------

  class Live {
    constructor({ url, topics, minMs, maxMs, apply }) {
      Object.assign(this, { url, minMs, maxMs, apply, lastAt: Date.now(), isDirty: false, timer: 0, isBusy: false });
      this.topics = new Map(topics.map((text) => text.split(":")).map(([topic, id]) => [topic, id ?? null]));
      this.schedule();
    }

    // After a change as soon as allowed; else by the clock: often without a stream, seldom with one.
    schedule() {
      clearTimeout(this.timer);
      if (!this.minMs || document.hidden || this.isBusy) return;
      const isFed = isStreaming && this.topics.size;
      const dueMs = this.isDirty || !isFed ? this.minMs : this.maxMs;
      this.timer = setTimeout(() => this.refresh(), Math.max(0, this.lastAt + dueMs - Date.now()));
    }

    change(changed) {
      for (const [topic, id] of this.topics) {
        if (!(topic in changed)) continue;
        if (id !== null && changed[topic] !== null && !changed[topic].includes(id)) continue;
        this.markDirty();
        return;
      }
    }

    markDirty() {
      this.isDirty = true;
      this.schedule();
    }

    async refresh() {
      this.isBusy = true;
      this.isDirty = false;
      let waitMs = 0;
      try {
        const response = await fetch(this.url, { credentials: "same-origin", headers: { "X-Requested-With": "fetch", "X-Continuity-Part": "live" } });
        if (response.redirected || response.status === 403) return location.reload(); // signed out
        if (!response.ok) throw new Error(`status ${response.status}`);
        this.apply(new DOMParser().parseFromString(await response.text(), "text/html"), this);
        document.body.classList.remove("cty-offline");
      } catch (error) {
        if (!(error instanceof TypeError && error.message.includes("fetch"))) console.error(error); // not the network
        document.body.dataset.offline = gettext("The server does not respond; retrying");
        document.body.classList.add("cty-offline");
        this.isDirty = true;
        waitMs = RETRY_MS;
      }
      this.isBusy = false;
      this.lastAt = Date.now() + Math.max(0, waitMs - this.minMs);
      this.schedule();
    }
  }

  function startParts(root) {
    for (const [name, part] of partsOf(root)) lastHtml.set(name, part.innerHTML);
    const { live, liveMs, liveMaxMs, liveTopics, liveReload } = root.dataset;
    lives.push(new Live({
      url: live,
      topics: liveTopics?.split(" ") ?? [],
      minMs: Number(liveMs),
      maxMs: Number(liveMaxMs ?? MAX_MS),
      apply(page, one) {
        if (!liveReload) updateParts(root, page);
        else if (page.querySelector(".cty-table tbody tr")) location.reload(); // an empty page reloads when there is content
        one.minMs = Number(page.querySelector("[data-live-ms]")?.dataset.liveMs ?? 0);
      },
    }));
  }

  function startList() {
    const model = [...document.body.classList].find((name) => name.startsWith("model-"));
    if (!document.body.classList.contains("change-list") || !model) return;
    for (const [name, part] of partsOf(document)) lastHtml.set(name, part.innerHTML);
    if (table(document)) followSelection(table(document));
    const topics = [model.slice("model-".length)];
    lists.push(new Live({ url: location.href, topics, minMs: LIST_MS, maxMs: LIST_MAX_MS, apply: updateList }));
    lives.push(...lists);
  }

  document.addEventListener("continuity:changed", (event) => lives.forEach((live) => live.change(event.detail)));
  document.addEventListener("continuity:stream", (event) => {
    if (isStreaming === event.detail.isOpen) return;
    isStreaming = event.detail.isOpen;
    for (const live of lives) {
      live.isDirty ||= isStreaming && wasStreaming; // what changed between two connections is unknown
      live.schedule();
    }
    wasStreaming ||= isStreaming;
  });
  document.addEventListener("visibilitychange", () => lives.forEach((live) => live.schedule()));
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-live]").forEach(startParts);
    startList();
  });
})();
