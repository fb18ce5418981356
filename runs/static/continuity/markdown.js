// Render the simple parts of a model's Markdown. All of it is inserted as text: no link is created and no image is loaded,
// because a page can make the model output addresses that leak data or mislead the user.
"use strict";

window.renderMarkdown = (() => {
  const MAX_LENGTH = 20000; // characters; longer text stays unrendered
  const INLINE = /`([^`\n]+)`|\*\*(?=\S)([^\n]*?\S)\*\*|(?<![\w*])\*(?=[^\s*])([^*\n]*[^\s*])\*(?![\w*])/g;
  const FENCE = /^\s*(```+|~~~+)/, ROW = /^\s*\|/, HEADING = /^#{1,6}\s+(\S.*)$/, ITEM = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(\S.*)$/;
  const startsAnother = (line) => !line.trim() || FENCE.test(line) || ROW.test(line) || HEADING.test(line) || ITEM.test(line);

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
      if (found[1] !== undefined) element("code", into).textContent = found[1];
      else inline(element(found[2] !== undefined ? "strong" : "em", into), found[2] ?? found[3]);
    }
    into.append(text.slice(done));
  }

  function item(box, [, indent, number, text]) {
    const kind = number ? "OL" : "UL";
    const list = box.lastChild?.tagName === kind ? box.lastChild : element(kind, box);
    const line = element("li", list);
    if (number) line.value = Number(number);
    line.style.marginLeft = `${Math.min(indent.replaceAll("\t", "  ").length, 12) * 0.5}rem`;
    return [line, text];
  }

  // Render the block that starts at line `at`; return the line after it.
  function block(box, lines, at) {
    const line = lines[at];
    const endOf = (isAfter) => {
      const end = lines.findIndex((one, number) => number > at && isAfter(one));
      return end < 0 ? lines.length : end;
    };
    const fence = FENCE.exec(line), heading = HEADING.exec(line), listed = ITEM.exec(line);
    if (!line.trim()) return at + 1;
    if (fence || ROW.test(line)) {
      const end = fence ? endOf((one) => one.trim().startsWith(fence[1])) : endOf((one) => !ROW.test(one));
      element("pre", box).textContent = lines.slice(fence ? at + 1 : at, end).join("\n");
      return fence ? end + 1 : end;
    }
    if (heading) {
      inline(element("strong", element("p", box)), heading[1]);
      return at + 1;
    }
    const end = endOf(startsAnother);
    const [into, first] = listed ? item(box, listed) : [element("p", box), line];
    inline(into, [first, ...lines.slice(at + 1, end).map((one) => (listed ? one.trim() : one))].join("\n"));
    return end;
  }

  // Replace a paragraph of Markdown text with rendered blocks.
  return (paragraph) => {
    const text = paragraph.textContent;
    if (text.length > MAX_LENGTH) return;
    const box = document.createElement("div"), lines = text.split("\n");
    box.className = "chat-prose";
    for (let at = 0; at < lines.length;) at = block(box, lines, at);
    paragraph.replaceWith(box);
  };
})();
