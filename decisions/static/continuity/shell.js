// Of every admin page: times relative or exact, in the viewer's time zone; icons that screen readers skip; blocks that scroll
// take the focus, so that the keyboard scrolls them. Also of what scripts add to the page later.
"use strict";

(() => {
  const KEY = "continuity.times", TICK_MS = 15000, SETTLE_MS = 150;
  const UNITS = [
    [86400, (count) => [gettext("%s d ago"), gettext("in %s d"), count]],
    [3600, (count) => [gettext("%s h ago"), gettext("in %s h"), count]],
    [60, (count) => [gettext("%s min ago"), gettext("in %s min"), count]],
    [1, (count) => [gettext("%s s ago"), gettext("in %s s"), count]],
  ];
  const format = new Intl.DateTimeFormat(document.documentElement.lang || "en", { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
  const zoned = new Intl.DateTimeFormat(document.documentElement.lang || "en", { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false, timeZoneName: "short" });

  function stored() {
    try { return localStorage.getItem(KEY); } catch { return null; } // a browser may forbid it
  }

  let isExact = stored() === "exact";

  function relative(at) {
    const seconds = (Date.now() - at) / 1000, span = Math.floor(Math.abs(seconds));
    if (span < 1) return gettext("just now");
    const [size, texts] = UNITS.find(([unit]) => span >= unit);
    const [past, future, count] = texts(Math.floor(span / size));
    return (seconds > 0 ? past : future).replace("%s", count);
  }

  function show(time) {
    const at = Date.parse(time.dateTime);
    if (Number.isNaN(at)) return;
    const text = isExact ? format.format(at) : relative(at);
    if (time.textContent !== text) time.textContent = text;
    if (!time.dataset.zoned) {
      time.dataset.zoned = "yes";
      time.title = zoned.format(at);
    }
  }

  const showAll = () => document.querySelectorAll("time[data-moment]").forEach(show);

  const scrolls = (element) => element.scrollWidth > element.clientWidth + 1 || element.scrollHeight > element.clientHeight + 1;

  function prepare(root) {
    root.querySelectorAll("time[data-moment]").forEach(show);
    for (const icon of root.querySelectorAll(".material-symbols-outlined:not([aria-hidden])")) icon.setAttribute("aria-hidden", "true");
    for (const hint of root.querySelectorAll(".help-tooltip[aria-label]:not([role])")) hint.setAttribute("role", "img");
    for (const block of root.querySelectorAll(".cty-pre, .cty-scroll, pre")) {
      if (block.hasAttribute("tabindex") === scrolls(block)) continue;
      block.toggleAttribute("tabindex", scrolls(block));
      if (block.hasAttribute("tabindex")) block.tabIndex = 0;
    }
  }

  function prepareSwitch() {
    for (const button of document.querySelectorAll("[data-times-switch]")) {
      button.hidden = false;
      button.setAttribute("aria-pressed", String(isExact));
    }
  }

  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-times-switch]")) return;
    isExact = !isExact;
    try { localStorage.setItem(KEY, isExact ? "exact" : "relative"); } catch { /* the choice lasts for this page */ }
    prepareSwitch();
    showAll();
  });

  document.addEventListener("DOMContentLoaded", () => {
    let isWaiting = false;
    const soon = () => {
      if (isWaiting) return;
      isWaiting = true;
      setTimeout(() => { isWaiting = false; prepare(document); }, SETTLE_MS);
    };
    prepareSwitch();
    prepare(document);
    new MutationObserver(soon).observe(document.body, { childList: true, subtree: true });
    window.addEventListener("resize", soon);
    document.addEventListener("toggle", soon, true);
    setInterval(() => { if (!isExact && !document.hidden) showAll(); }, TICK_MS);
  });
})();
