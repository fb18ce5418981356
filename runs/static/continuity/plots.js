// Plots of statistics with Chart.js, which Unfold's pages load.
//
// [data-plots="URL of the values"]  holds [data-plot="name"] elements, each with a canvas. A click on a point opens the runs
// behind it: data-runs is the URL of their list. The values are requested again when runs change (changes.js).
"use strict";

(() => {
  const REFRESH_MS = 10000; // the scheduler adds ended runs every five seconds
  const MAX_MS = 60000;
  const DAY_S = 86400;
  const LANGUAGE = document.documentElement.lang || "en";
  const palette = ["--color-primary-500", "--cty-partial", "--cty-succeeded", "--cty-waiting", "--cty-running", "--cty-failed", "--cty-neutral"];
  const statusColours = { succeeded: "--cty-succeeded", partial_success: "--cty-partial", failed: "--cty-failed", canceled: "--cty-canceled" };
  const statusWords = { succeeded: gettext("succeeded"), partial_success: gettext("partial success"), failed: gettext("failed"), canceled: gettext("canceled") };

  // --- numbers with units -------------------------------------------------------------------------

  const number = (digits = 1) => new Intl.NumberFormat(LANGUAGE, { maximumFractionDigits: digits });
  const short = new Intl.NumberFormat(LANGUAGE, { notation: "compact", maximumFractionDigits: 1 });
  const units = {
    count: { axis: gettext("runs"), show: (value) => number(0).format(value) },
    steps: { axis: gettext("steps"), show: (value) => short.format(value) },
    time: { axis: gettext("duration"), show: duration },
    percent: { axis: "%", show: (value) => `${number(1).format(value)} %`, max: 100 },
    pages: { axis: gettext("pages per hour"), show: (value) => short.format(value) },
    tokens: { axis: gettext("tokens per hour"), show: (value) => short.format(value) },
    dollars: { axis: "US$", show: (value) => new Intl.NumberFormat(LANGUAGE, { style: "currency", currency: "USD", maximumFractionDigits: value < 1 ? 4 : 2 }).format(value) },
    slots: { axis: gettext("runs"), show: (value) => number(1).format(value) },
  };

  function duration(ms) {
    if (ms < 1000) return `${number(0).format(ms)} ms`;
    if (ms < 60000) return `${number(1).format(ms / 1000)} s`;
    if (ms < 3600000) return `${number(1).format(ms / 60000)} min`;
    return `${number(1).format(ms / 3600000)} h`;
  }

  // --- what each plot shows -----------------------------------------------------------------------

  const sum = (values) => values.reduce((total, value) => total + (value ?? 0), 0);
  const some = (series) => Object.entries(series).map(([name, values], index) => ({ name, values, colour: palette[index % palette.length] }));

  const plots = {
    runs: (data) => ({
      unit: "count", isStacked: true,
      series: Object.entries(data.runs).map(([status, values]) => ({ name: statusWords[status] ?? status, values, colour: statusColours[status], query: { status } })),
      total: (series) => `${number(0).format(sum(series.map((one) => sum(one.values))))} ${gettext("runs")}`,
    }),
    failureRate: (data) => ({ unit: "percent", series: some(data.failureRate).map((one) => ({ ...one, query: { status: "failed", template: one.name } })), query: { status: "failed" } }),
    duration: (data) => ({ unit: "time", series: percentiles(data.duration) }),
    wait: (data) => ({ unit: "time", series: [...percentiles(data.wait), { name: gettext("oldest in the queue"), values: data.wait.oldest, colour: "--cty-failed", isDashed: true }] }),
    slots: (data) => ({
      unit: "slots",
      series: [
        { name: gettext("slots in use"), values: data.slots.used, colour: "--cty-running", isFilled: true },
        { name: gettext("slots"), values: data.times.map(() => data.slots.total), colour: "--cty-neutral", isDashed: true, isLimit: true },
        { name: gettext("longest queue"), values: data.slots.queued, colour: "--cty-partial" },
      ],
    }),
    steps: (data) => ({ unit: "steps", isStacked: true, series: some(data.steps), total: (series) => `${number(0).format(sum(series.map((one) => sum(one.values))))} ${gettext("steps")}` }),
    pages: (data) => ({ unit: "pages", series: [{ name: gettext("pages per hour"), values: data.pages, colour: "--cty-succeeded", isFilled: true }], total: () => `${number(0).format(sum(data.pages) * data.stepS / 3600)} ${gettext("pages")}` }),
    tokens: (data) => ({
      unit: "tokens", isStacked: true, query: { template: "agent_task" },
      series: [
        { name: gettext("input"), values: data.tokens.input, colour: "--color-primary-500" },
        { name: gettext("output"), values: data.tokens.output, colour: "--cty-waiting" },
      ],
      total: () => `${short.format((sum(data.tokens.input) + sum(data.tokens.output)) * data.stepS / 3600)} ${gettext("tokens")}`,
    }),
    cost: (data) => ({ unit: "dollars", isBar: true, query: { template: "agent_task" }, series: [{ name: gettext("cost"), values: data.cost, colour: "--color-primary-500" }], total: () => units.dollars.show(sum(data.cost)) }),
  };

  const percentiles = ({ p50, p95 }) => [
    { name: "p50", values: p50, colour: "--color-primary-500" },
    { name: "p95", values: p95, colour: "--cty-partial" },
  ];

  // --- drawing ------------------------------------------------------------------------------------

  // A colour of the page's theme as Chart.js understands it.
  const probe = document.createElement("i");
  function colour(name, alpha = 1) {
    if (!probe.isConnected) document.body.append(probe);
    probe.style.color = `color-mix(in srgb, var(${name}) ${alpha * 100}%, transparent)`;
    const canvas = colour.canvas ??= Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = getComputedStyle(probe).color;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, opacity] = canvas.getImageData(0, 0, 1, 1).data;
    return `rgba(${red}, ${green}, ${blue}, ${opacity / 255})`;
  }

  function timeLabel(ms, data, isExact) {
    const spanS = data.stepS * data.times.length;
    const day = { month: "short", day: "numeric" };
    const clock = { hour: "2-digit", minute: "2-digit", hour12: false };
    const parts = isExact || spanS > DAY_S * 1.5 && spanS <= DAY_S * 8 ? { ...day, ...clock } : spanS > DAY_S * 8 ? day : clock;
    return new Intl.DateTimeFormat(LANGUAGE, parts).format(ms);
  }

  const hasNeighbour = (values, index) => (values[index - 1] ?? values[index + 1] ?? null) !== null;

  // Round steps of a time axis.
  const TIME_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400].map((s) => s * 1000)];
  function roundTimes(axis) {
    const step = TIME_STEPS.find((ms) => axis.max / ms <= 5) ?? 86400000 * Math.ceil(axis.max / 86400000 / 5);
    axis.max = Math.max(step, Math.ceil(axis.max / step) * step);
    axis.ticks = Array.from({ length: Math.round(axis.max / step) + 1 }, (_, index) => ({ value: index * step }));
  }

  function datasets(plot, data) {
    const isBar = plot.isStacked || plot.isBar;
    return plot.series.map((one) => ({
      label: one.name,
      data: one.values,
      source: one,
      type: isBar ? "bar" : "line",
      stack: plot.isStacked ? "all" : undefined,
      backgroundColor: isBar ? colour(one.colour, 0.85) : colour(one.colour, 0.18),
      borderColor: colour(one.colour),
      borderWidth: isBar ? 0 : 2,
      borderDash: one.isDashed ? [5, 4] : [],
      fill: one.isFilled ? "origin" : false,
      pointRadius: one.values.map((value, index, all) => value === null || one.isLimit || hasNeighbour(all, index) ? 0 : 2.5), // of points without a line
      pointHoverRadius: 4,
      tension: 0.25,
      categoryPercentage: 0.92,
      barPercentage: 0.95,
    }));
  }

  function options(root, plot, data, { isSmall }) {
    const unit = units[plot.unit];
    const text = colour("--cty-dim"), line = colour("--cty-line");
    const title = (label) => ({ display: true, text: label, color: text, font: { size: 11 } });
    return {
      responsive: true,
      maintainAspectRatio: false,
      animation: false,
      interaction: { mode: "index", intersect: false },
      onClick: (event, found, chart) => openRuns(root, plot, data, chart.getElementsAtEventForMode(event, "nearest", { intersect: true }, true)[0] ?? found[0], chart),
      plugins: {
        legend: { display: plot.series.length > 1, position: "bottom", align: "start", labels: { color: colour("--cty-text"), boxWidth: 10, boxHeight: 10, font: { size: 11 } } },
        tooltip: {
          callbacks: {
            title: (items) => `${timeLabel(data.times[items[0].dataIndex], data, true)} – ${timeLabel(data.times[items[0].dataIndex] + data.stepS * 1000, data, true)}`,
            label: (item) => ` ${item.dataset.label}: ${item.raw === null ? "–" : unit.show(item.raw)}`,
          },
          filter: (item) => item.raw !== null && (item.raw !== 0 || plot.series.length < 3),
        },
      },
      scales: {
        x: {
          stacked: Boolean(plot.isStacked), grid: { display: false }, border: { color: line },
          title: isSmall ? { display: false } : title(timeZone()),
          ticks: { color: text, font: { size: 11 }, maxRotation: 0, autoSkip: true, autoSkipPadding: 18, callback: (_, index) => timeLabel(data.times[index], data) },
        },
        y: {
          stacked: Boolean(plot.isStacked), beginAtZero: true, suggestedMax: unit.max && 10, afterBuildTicks: plot.unit === "time" ? roundTimes : undefined,
          grid: { color: line }, border: { display: false }, title: title(unit.axis),
          ticks: { color: text, font: { size: 11 }, maxTicksLimit: 6, precision: plot.unit === "count" ? 0 : undefined, callback: (value) => unit.show(value) },
        },
      },
    };
  }

  const timeZone = () => new Intl.DateTimeFormat(LANGUAGE, { timeZoneName: "short" }).formatToParts(Date.now()).find((part) => part.type === "timeZoneName").value;

  // --- the runs behind a point --------------------------------------------------------------------

  function runsUrl(root, query, fromMs, toMs) {
    const { runs, workspace, template } = root.dataset;
    const wanted = new URLSearchParams({ created_at__gte: new Date(fromMs).toISOString(), created_at__lt: new Date(toMs).toISOString() });
    if (workspace) wanted.set("workspace", workspace);
    if (template) wanted.set("template", template);
    for (const [name, value] of Object.entries(query ?? {})) if (!wanted.has(name)) wanted.set(name, value);
    return `${runs}?${wanted}`;
  }

  function openRuns(root, plot, data, found, chart) {
    if (!found) return;
    const from = data.times[found.index];
    const query = { ...plot.query, ...chart.data.datasets[found.datasetIndex].source.query };
    location.href = runsUrl(root, query, from, from + data.stepS * 1000);
  }

  // --- one plot -----------------------------------------------------------------------------------

  function draw(root, card, data) {
    const plot = plots[card.dataset.plot](data);
    const canvas = card.querySelector("canvas");
    const isEmpty = plot.series.every((one) => one.isLimit || !one.values.some((value) => value));
    card.querySelector(".plots-empty").hidden = !isEmpty;
    const total = card.querySelector("[data-plot-total]");
    if (total) total.textContent = isEmpty || !plot.total ? "" : plot.total(plot.series);
    const link = card.querySelector("[data-plot-runs]");
    if (link) {
      const query = { ...plot.query, ...Object.fromEntries(new URLSearchParams(link.dataset.plotRuns)) };
      link.href = runsUrl(root, query, data.times[0], data.times.at(-1) + data.stepS * 1000);
    }
    card.chart?.destroy();
    const isSmall = card.hasAttribute("data-small");
    card.chart = new Chart(canvas, { type: "bar", data: { labels: data.times, datasets: datasets(plot, data) }, options: options(root, plot, data, { isSmall }) });
    card.fill = () => fillTable(card.querySelector("[data-plot-table]"), plot, data);
    if (card.querySelector("details[open]")) card.fill();
  }

  // The same values as text, filled when they are opened: the newest first, points without values left out.
  function fillTable(table, plot, data) {
    if (!table) return;
    const shown = plot.series.filter((one) => !one.isLimit);
    const cell = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });
    const head = document.createElement("tr");
    head.append(cell("th", gettext("From")), ...shown.map((one) => cell("th", one.name)));
    const rows = data.times.map((time, index) => ({ time, values: shown.map((one) => one.values[index]) }));
    const body = rows.filter(({ values }) => values.some((value) => value)).reverse().map(({ time, values }) => {
      const row = document.createElement("tr");
      row.append(cell("td", timeLabel(time, data, true)), ...values.map((value) => cell("td", value === null ? "–" : units[plot.unit].show(value))));
      return row;
    });
    table.replaceChildren(head, ...body);
  }

  // --- values -------------------------------------------------------------------------------------

  function start(root) {
    let data = null, lastAt = 0, timer = 0, isDirty = false;
    const problem = root.querySelector("[data-plots-problem]");
    const drawAll = () => root.querySelectorAll("[data-plot]").forEach((card) => data && draw(root, card, data));

    async function load() {
      lastAt = Date.now();
      isDirty = false;
      const { plots: url, range, workspace = "", template = "" } = root.dataset;
      try {
        const response = await fetch(`${url}?${new URLSearchParams({ range, workspace, template })}`, { credentials: "same-origin" });
        if (response.redirected || response.status === 403) return location.reload();
        if (!response.ok) throw new Error(`status ${response.status}`);
        data = await response.json();
        if (problem) problem.hidden = true;
        drawAll();
      } catch (error) {
        if (problem) Object.assign(problem, { hidden: false, textContent: `${gettext("The values cannot be loaded")} (${error.message})` });
      }
      schedule();
    }

    function schedule() {
      clearTimeout(timer);
      if (!document.hidden) timer = setTimeout(load, Math.max(0, lastAt + (isDirty ? REFRESH_MS : MAX_MS) - Date.now()));
    }

    document.addEventListener("continuity:changed", (event) => {
      if (!("run" in event.detail)) return;
      isDirty = true;
      schedule();
    });
    document.addEventListener("visibilitychange", schedule);
    new MutationObserver(drawAll).observe(document.documentElement, { attributeFilter: ["class"] }); // light or dark
    root.addEventListener("change", (event) => event.target.matches("[data-submits]") && submit(event.target.form, root));
    root.addEventListener("toggle", (event) => event.target.closest("[data-plot]")?.fill?.(), true);
    load();
  }

  function submit(form, root) {
    const choice = new URLSearchParams(new FormData(form));
    choice.set("range", root.dataset.range);
    location.search = choice;
  }

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("[data-plots]").forEach(start));
})();
