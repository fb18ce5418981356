// Render a model's Markdown, also while it is streamed. All of it is inserted as text: no link is created and no image is
// loaded, because a page can make the model output addresses that leak data or mislead the user.
//
// renderMarkdown(paragraph)   replace a paragraph of Markdown text with the rendered blocks
// streamMarkdown(box)         return {text, set(text)}: show a growing text in the box, rendered a few times a second
// [data-markdown]             elements of the page that are rendered when it is loaded
"use strict";

(() => {
  const MAX_LENGTH = 20000; // characters; longer text stays unrendered
  const EVERY_MS = 80;
  const INLINE = /(?<!`)(`{1,3})(?!`)(.+?)(?<!`)\1(?!`)|\*\*(?=\S)([^\n]*?\S)\*\*|(?<!\w)__(?=\S)([^\n]*?\S)__(?!\w)|~~(?=\S)([^\n]*?\S)~~|(?<![\w*])\*(?=[^\s*])([^*\n]*[^\s*])\*(?![\w*])|(?<![\w_])_(?=[^\s_])([^_\n]*[^\s_])_(?![\w_])/g;
  const NAMES = [, , "code", "strong", "strong", "del", "em", "em"]; // of the groups of INLINE
  const FENCE = /^\s*(```+|~~~+)/, ROW = /^\s*\|/, HEADING = /^(#{1,6})\s+(\S.*?)\s*#*$/, RULE = /^\s*(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/;
  const ITEM = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(\S.*)$/, QUOTE = /^\s{0,3}>\s?/;
  const DELIMITER = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
  const startsAnother = (line) => !line.trim() || [FENCE, ROW, HEADING, ITEM, QUOTE, RULE].some((pattern) => pattern.test(line));

  function element(name, into) {
    const created = document.createElement(name);
    into.append(created);
    return created;
  }

  function inline(into, text) {
    let done = 0;
    for (const found of text.matchAll(INLINE)) {
      into.append(text.slice(done, found.index));
      done = found.index + found[0].length;
      const group = NAMES.findIndex((name, number) => name && found[number] !== undefined);
      const part = element(NAMES[group], into);
      if (group === 2) part.textContent = found[2].replace(/^ (.*\S.*) $/s, "$1");
      else inline(part, found[group]);
    }
    into.append(text.slice(done));
  }

  function item(box, [, indent, number, text]) {
    const kind = number ? "OL" : "UL", depth = Math.min(indent.replaceAll("\t", "  ").length, 12);
    let into = box, list = box.lastChild;
    // A deeper item belongs to the last item of the list before it.
    while (list?.matches?.("ul, ol") && depth > Number(list.dataset.depth) + 1) { into = list.lastChild; list = into.lastChild; }
    const isSame = list?.tagName === kind && list.parentElement === into && depth <= Number(list.dataset.depth) + 1;
    if (!isSame) { list = element(kind, into); list.dataset.depth = depth; }
    const line = element("li", list);
    if (number) line.value = Number(number);
    return [element("span", line), text];
  }

  // Split a row of a table at its unescaped bars.
  function cells(line) {
    const parts = line.trim().replace(/^\|/, "").split(/(?<!\\)\|/);
    if (parts.length > 1 && !parts.at(-1).trim()) parts.pop();
    return parts.map((part) => part.trim().replaceAll("\\|", "|"));
  }

  const isTable = (lines, at) => lines[at].includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && DELIMITER.test(lines[at + 1]) && cells(lines[at]).length === cells(lines[at + 1]).length;

  function row(into, name, texts, sides) {
    const line = element("tr", into);
    sides.forEach((side, number) => {
      const cell = element(name, line);
      if (name === "th") cell.scope = "col";
      if (side) cell.style.textAlign = side;
      inline(cell, texts[number] ?? "");
    });
  }

  function table(box, lines, at) {
    let end = at + 2;
    while (end < lines.length && lines[end].trim() && (ROW.test(lines[end]) || !startsAnother(lines[end]))) end += 1;
    const sides = cells(lines[at + 1]).map((one) => (one.endsWith(":") ? (one.startsWith(":") ? "center" : "right") : ""));
    const frame = element("div", box);
    frame.className = "chat-table";
    frame.tabIndex = 0; // a wide table is scrolled with the keyboard
    const grid = element("table", frame);
    row(element("thead", grid), "th", cells(lines[at]), sides);
    const body = element("tbody", grid);
    for (const line of lines.slice(at + 2, end)) row(body, "td", cells(line), sides);
    return end;
  }

  // Render the block that starts at line `at`; return the line after it.
  function block(box, lines, at) {
    const line = lines[at];
    const endOf = (isAfter) => {
      const end = lines.findIndex((one, number) => number > at && isAfter(one, number));
      return end < 0 ? lines.length : end;
    };
    const fence = FENCE.exec(line), heading = HEADING.exec(line), listed = RULE.test(line) ? null : ITEM.exec(line);
    if (!line.trim()) return at + 1;
    if (!fence && isTable(lines, at)) return table(box, lines, at);
    if (fence || ROW.test(line)) {
      const end = fence ? endOf((one) => one.trim().startsWith(fence[1])) : endOf((one, number) => !ROW.test(one) || isTable(lines, number));
      element("pre", box).textContent = lines.slice(fence ? at + 1 : at, end).join("\n");
      return fence ? end + 1 : end;
    }
    if (heading) {
      const title = element("p", box);
      title.setAttribute("role", "heading");
      title.setAttribute("aria-level", Math.min(6, heading[1].length + 2));
      inline(element("strong", title), heading[2]);
      return at + 1;
    }
    if (RULE.test(line)) { element("hr", box); return at + 1; }
    if (QUOTE.test(line)) {
      const end = endOf((one) => !QUOTE.test(one));
      blocks(element("blockquote", box), lines.slice(at, end).map((one) => one.replace(QUOTE, "")));
      return end;
    }
    const end = endOf((one, number) => startsAnother(one) || isTable(lines, number));
    const [into, first] = listed ? item(box, listed) : [element("p", box), line];
    inline(into, [first, ...lines.slice(at + 1, end).map((one) => (listed ? one.trim() : one))].join("\n"));
    return end;
  }

  function blocks(box, lines) {
    for (let at = 0; at < lines.length;) at = block(box, lines, at);
  }

  function rendered(text) {
    const box = document.createElement("div");
    box.className = "chat-prose";
    if (text.length > MAX_LENGTH) {
      box.classList.add("chat-plain");
      box.textContent = text;
    } else blocks(box, text.split("\n"));
    return box;
  }

  window.renderMarkdown = (paragraph) => {
    if (paragraph.textContent.length <= MAX_LENGTH) paragraph.replaceWith(rendered(paragraph.textContent));
  };

  window.streamMarkdown = (box, onRendered = () => {}) => {
    let timer = 0, tookMs = 0;
    const stream = {
      text: "",
      set(text, isFinal = false) {
        stream.text = text;
        if (isFinal) { clearTimeout(timer); timer = 0; show(); } else timer ||= setTimeout(show, Math.max(EVERY_MS, 4 * tookMs)); // a long text is rendered less often
      },
    };
    function show() {
      timer = 0;
      const start = performance.now();
      box.replaceChildren(rendered(stream.text));
      tookMs = performance.now() - start;
      onRendered();
    }
    return stream;
  };

  const renderAll = (root) => { for (const text of root.querySelectorAll("[data-markdown]:not([data-rendered])")) { text.dataset.rendered = ""; text.replaceChildren(rendered(text.textContent)); } };
  renderAll(document);
  // Parts of a run's page are replaced while the run works.
  for (const root of document.querySelectorAll("[data-live]")) new MutationObserver(() => renderAll(root)).observe(root, { childList: true, subtree: true });
})();
