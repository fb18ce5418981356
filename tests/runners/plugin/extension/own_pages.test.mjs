import assert from "node:assert/strict";
import { test } from "node:test";

import { ownPages, patternExpression, refuseOwnPage } from "../../../../runners/plugin/extension/own_pages.js";

const isOwn = ownPages(["http://127.0.0.1:8000"], ["https://continuity.example/admin/*"]);

test("pages of the server are the product's own, whatever is before their address", () => {
  for (const url of ["http://127.0.0.1:8000/x", "view-source:http://127.0.0.1:8000/", "blob:http://127.0.0.1:8000/1-2"]) assert.ok(isOwn(url), url);
  for (const url of ["http://127.0.0.1:8001/", "https://127.0.0.1:8000/", "about:blank", ""]) assert.ok(!isOwn(url), url);
});

test("pages that may send the extension messages are the product's own", () => {
  assert.ok(isOwn("https://continuity.example/admin/runs/"));
  assert.ok(!isOwn("https://continuity.example/"));
});

test("agents may not act on pages of the product and of the browser", () => {
  const code = (url) => {
    try {
      refuseOwnPage(url, isOwn);
      return "";
    } catch (error) {
      return error.code;
    }
  };
  const urls = ["http://127.0.0.1:8000/admin/", "chrome://settings/", "chrome-extension://abc/x.html", "devtools://devtools/"];
  assert.deepEqual(urls.map(code), urls.map(() => "INVALID_TARGET"));
  assert.deepEqual(["https://a.example/", "about:blank", ""].map(code), ["", "", ""]);
});

test("a pattern matches as Chrome matches it", () => {
  const matches = (pattern, url) => patternExpression(pattern).test(url);
  assert.ok(matches("*://*.a.example/*", "https://b.a.example/x"));
  assert.ok(matches("*://*.a.example/*", "http://a.example/"));
  assert.ok(!matches("*://*.a.example/*", "http://aXa.example/"));
  assert.ok(matches("http://localhost:8000/admin/*", "http://localhost:8000/admin/"));
});
