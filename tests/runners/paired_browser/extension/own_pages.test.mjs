import assert from "node:assert/strict";
import { test } from "node:test";

import { ownPages, patternExpression, refuseOwnPage } from "../../../../runners/paired_browser/extension/own_pages.js";

const isOwn = ownPages(["http://127.0.0.1:8000"], ["https://continuity.example/admin/*"]);

test("pages of the server are the product's own, whatever is before their address", () => {
  for (const url of ["http://127.0.0.1:8000/x", "view-source:http://127.0.0.1:8000/", "blob:http://127.0.0.1:8000/1-2"]) assert.ok(isOwn(url), url);
  for (const url of ["http://127.0.0.1:8001/", "https://127.0.0.1:8000/", "about:blank", ""]) assert.ok(!isOwn(url), url);
});

test("the product's own pages are recognized however their host is written", () => {
  const own = ownPages(["http://127.0.0.1:8000", "https://host.example"], ["http://127.0.0.1:8000/admin/*"]);
  const hosts = [
    "localhost:8000", "localhost.:8000", "LOCALHOST:8000", "x.localhost:8000", "127.0.0.2:8000", "127.1:8000", "0x7f.1:8000", "2130706433:8000",
    "0.0.0.0:8000", "0:8000", "[::1]:8000", "[::]:8000", "[::ffff:127.0.0.1]:8000", "[::ffff:7f00:2]:8000", "[0:0:0:0:0:ffff:7f00:1]:8000",
  ];
  for (const host of hosts) assert.ok(own(`http://${host}/admin/`), host);
  for (const host of ["host.example", "host.example.", "HOST.example.", "host.example:443"]) assert.ok(own(`https://${host}/`), host);
  for (const host of ["localhost.example:8000", "128.0.0.1:8000", "[::2]:8000", "10.0.0.1:8000"]) assert.ok(!own(`http://${host}/`), host);
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
