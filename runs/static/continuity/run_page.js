// A run's page: the player steps through the run's steps and shows the page as it was at each of them; the timeline and the
// conversation mark the same step. Keys: j and k step, p plays, o opens the step. The parts of the page are replaced while
// the run works, so elements are looked up when they are needed.
"use strict";

(() => {
  const root = document.querySelector("[data-live]");
  if (!root) return;
  const EVERY_MS = 1200;
  let now = 0, timer = 0; // the number of the chosen step, 0 for none

  const player = () => root.querySelector("[data-player]");
  const find = (name) => player()?.querySelector(`[data-player-${name}]`);
  const steps = () => [...root.querySelectorAll(".cty-step[data-at-step]")].map((row) => Number(row.dataset.atStep));
  const moments = () => JSON.parse(document.getElementById("run-moments")?.textContent || "[]");

  function mark() {
    for (const element of root.querySelectorAll("[data-at-step], [data-player-frame]")) element.toggleAttribute("data-now", Number(element.dataset.atStep ?? element.dataset.playerFrame) === now);
  }

  // Show the chosen step in the player; without one the last step that has a picture.
  function show() {
    mark();
    const all = moments();
    if (!player() || !all.length) return;
    const at = now ? Math.max(0, all.findLastIndex((one) => one.step <= now)) : all.length - 1, moment = all[at];
    const link = find("link"), picture = find("picture"), step = find("step"), slider = find("at");
    link.hidden = !moment.picture;
    find("blank").hidden = Boolean(moment.picture);
    if (moment.picture && picture.getAttribute("src") !== moment.picture) { picture.src = moment.picture; link.href = moment.picture; }
    find("dot").dataset.tone = moment.tone;
    step.textContent = `${moment.step} · ${moment.label}`;
    step.href = `#step-${moment.step}`;
    find("took").textContent = moment.took;
    find("count").textContent = `${at + 1} / ${all.length}`;
    slider.max = all.length - 1;
    slider.value = at;
    const frame = [...player().querySelectorAll("[data-player-frame]")].filter((one) => Number(one.dataset.playerFrame) <= moment.step).at(-1);
    for (const one of player().querySelectorAll("[data-player-frame]")) one.toggleAttribute("data-now", one === frame);
    if (frame) scrollWithin(frame.parentElement, frame, "x");
  }

  // Scroll a box, not the page.
  function scrollWithin(box, element, axis) {
    const outer = box.getBoundingClientRect(), inner = element.getBoundingClientRect();
    if (axis === "x") box.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
    else if (inner.top < outer.top || inner.bottom > outer.bottom) box.scrollTop += inner.top - outer.top - outer.height / 3;
  }

  function choose(step, { scrolls = false } = {}) {
    now = step;
    show();
    const log = root.querySelector("[data-run-log]"), entry = log?.querySelector(`[data-at-step="${step}"]`);
    if (entry) scrollWithin(log, entry, "y");
    if (scrolls) root.querySelector(`.cty-step[data-at-step="${step}"]`)?.scrollIntoView({ block: "nearest" });
  }

  // Step through a list of steps: the moments of the player, or with the keys the rows of the timeline.
  function go(by, list = moments().map((one) => one.step)) {
    if (!list.length) return false;
    const at = list.indexOf(now), start = by > 0 ? -1 : list.length;
    const next = Math.max(0, Math.min(list.length - 1, (at < 0 ? start : at) + by));
    const isMoved = list[next] !== now;
    choose(list[next], { scrolls: !player() });
    return isMoved;
  }

  function play(wants = !timer) {
    clearInterval(timer);
    timer = 0;
    if (wants && moments().length) {
      const all = moments();
      if (!now || now === all.at(-1).step) choose(all[0].step);
      timer = setInterval(() => { if (!go(1)) play(false); }, EVERY_MS);
    }
    showPlaying();
  }

  function showPlaying() {
    const button = find("play");
    if (!button) return;
    button.firstElementChild.textContent = timer ? "pause" : "play_arrow";
    button.setAttribute("aria-label", timer ? button.dataset.pause : button.dataset.play);
  }

  function open() {
    const row = root.querySelector(`.cty-step[data-at-step="${now}"]`);
    if (!row) return;
    row.open = !row.open;
    row.querySelector("summary").focus();
  }

  root.addEventListener("click", (event) => {
    const target = event.target;
    const by = target.closest("[data-player-go]"), frame = target.closest("[data-player-frame]"), entry = target.closest("[data-at-step]");
    if (target.closest("[data-player-play]")) play();
    else if (by) { play(false); go(Number(by.dataset.playerGo)); }
    else if (frame) { play(false); choose(Number(frame.dataset.playerFrame)); }
    else if (entry && !target.closest("a, .cty-lazy")) choose(Number(entry.dataset.atStep));
  });
  root.addEventListener("input", (event) => {
    if (!event.target.matches("[data-player-at]")) return;
    play(false);
    choose(moments()[Number(event.target.value)].step);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select, [contenteditable], dialog")) return;
    const action = { j: () => { play(false); go(1, steps()); }, k: () => { play(false); go(-1, steps()); }, p: () => play(), o: open }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });

  // A replaced part shows the chosen step again.
  new MutationObserver((changes) => { if (changes.some((change) => [...change.addedNodes].some((node) => node.nodeType === 1 && (node.matches("section, .cty-columns") || node.querySelector("[data-at-step]"))))) { show(); showPlaying(); } }).observe(root, { childList: true, subtree: true });
  const linked = /^#step-(\d+)$/.exec(location.hash);
  if (linked) choose(Number(linked[1]), { scrolls: true });
  else show();
})();
