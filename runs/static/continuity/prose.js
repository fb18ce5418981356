// What a model says is Markdown, as a rule: its plain parts are shown as what they mean. All of it goes in as text. No link is made
// and no picture loaded, so that an address is seen as it is, and what an agent was made to say leads nobody anywhere.
"use strict";

window.continuityProse = (() => {
  const LONGEST = 20000; // characters; what is longer stays as it came
  const INLINE = /`([^`\n]+)`|\*\*(?=\S)([^\n]*?\S)\*\*|(?<![\w*])\*(?=[^\s*])([^*\n]*[^\s*])\*(?![\w*])/g;
  const FENCE = /^\s*(```+|~~~+)/, ROW = /^\s*\|/, HEADING = /^#{1,6}\s+(\S.*)$/, ITEM = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(\S.*)$/;
  const startsAnother = (line) => !line.trim() || FENCE.test(line) || ROW.test(line) || HEADING.test(line) || ITEM.test(line);

  function element(name, into) {
    const made = document.createElement(name);
    into.append(made);
    return made;
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

  // One block from the lines at `at` on; returns where the next begins.
  function block(box, lines, at) {
    const line = lines[at];
    const upTo = (isOver) => {
      const end = lines.findIndex((one, number) => number > at && isOver(one));
      return end < 0 ? lines.length : end;
    };
    const fence = FENCE.exec(line), heading = HEADING.exec(line), listed = ITEM.exec(line);
    if (!line.trim()) return at + 1;
    if (fence || ROW.test(line)) {
      const end = fence ? upTo((one) => one.trim().startsWith(fence[1])) : upTo((one) => !ROW.test(one));
      element("pre", box).textContent = lines.slice(fence ? at + 1 : at, end).join("\n");
      return fence ? end + 1 : end;
    }
    if (heading) {
      inline(element("strong", element("p", box)), heading[1]);
      return at + 1;
    }
    const end = upTo(startsAnother);
    const [into, first] = listed ? item(box, listed) : [element("p", box), line];
    inline(into, [first, ...lines.slice(at + 1, end).map((one) => (listed ? one.trim() : one))].join("\n"));
    return end;
  }

  // Put blocks in the place of the paragraph that holds a text.
  return (words) => {
    const text = words.textContent;
    if (text.length > LONGEST) return;
    const box = document.createElement("div"), lines = text.split("\n");
    box.className = "chat-prose";
    for (let at = 0; at < lines.length;) at = block(box, lines, at);
    words.replaceWith(box);
  };
})();
