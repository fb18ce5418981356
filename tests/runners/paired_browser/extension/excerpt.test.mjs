import assert from "node:assert/strict";
import { test } from "node:test";

import { excerptOf } from "../../../../runners/paired_browser/extension/reading/excerpt.js";

const lines = (count, { text = (at) => `line ${at} ${"x".repeat(100)}`, inView = () => false } = {}) =>
  Array.from({ length: count }, (_, at) => ({ text: text(at), inView: inView(at), isText: true }));

test("a page that fits is shown whole", () => {
  assert.deepEqual(excerptOf([{ text: "a", inView: true }, { text: "b", inView: false }]), { text: "a\nb", next: null, left: 0 });
});

test("of a long page the lines in view come first, and the rest is marked", () => {
  const { text, next, left } = excerptOf(lines(100, { inView: (at) => at >= 50 && at < 60 }));
  assert.match(text, /^… 50 lines left out \(from: 1\)\nline 50 /);
  assert.equal(next, 101 - (left - 50));
});

test("reading on begins with the given line", () => {
  const { text, next } = excerptOf(lines(100), { start: 90 });
  assert.match(text, /^line 89 /);
  assert.equal(next, null);
});

test("long texts are shortened unless the whole is wanted", () => {
  const long = lines(30, { text: () => "y".repeat(300) });
  assert.equal(excerptOf(long).text.split("\n")[0].length, 160);
  assert.equal(excerptOf(long, { full: true }).text.split("\n")[0].length, 300);
});
