import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.chrome = { i18n: { getMessage: (name, values) => [name, ...values].join(" ") } };
const { waitTexts } = await import("../../../../runners/paired_browser/extension/takeover/wait_texts.js");

const approval = (fields) => waitTexts({ type: "confirmation", ...fields }).heading;

test("an approval names what is done, and where", () => {
  assert.equal(approval({ act: "submit", host: "shop.example" }), "waitApproval waitSubmit shop.example");
  assert.equal(approval({ act: "call", tool: "write_file" }), "waitApproval waitCall write_file");
  assert.equal(approval({ act: "upload" }), "waitApproval waitUpload waitThisPage");
});

test("an act that this version does not know is one on the page", () => {
  assert.equal(approval({ act: "paint", host: "shop.example" }), "waitApproval waitAct shop.example");
});

test("a question of the agent is shown; anything else is not", () => {
  assert.equal(waitTexts({ type: "answer", question: "Which size?" }).subject, "Which size?");
  assert.deepEqual([waitTexts(undefined), waitTexts(null), waitTexts({ type: "weather" })], [null, null, null]);
});
