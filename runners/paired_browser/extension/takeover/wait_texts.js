// What a task waits for from a person, in the language of the browser: `waitsFor` of the extension protocol.
const ACTS = {
  submit: "waitSubmit", click: "waitClick", type: "waitType", key: "waitKey", select: "waitSelect", drag: "waitDrag", upload: "waitUpload",
  dialog: "waitDialog", act: "waitAct",
};

const text = (name, ...values) => chrome.i18n.getMessage(name, values);

// Return {heading, subject, hint}; null if it waits for nothing that this version knows.
export function waitTexts(waitsFor) {
  if (waitsFor?.type === "answer") return { heading: text("waitAnswer"), subject: String(waitsFor.question ?? ""), hint: text("waitAnswerHint") };
  if (waitsFor?.type !== "confirmation") return null;
  const { act, tool = "", host, element = "" } = waitsFor;
  const what = act === "call" ? text("waitCall", tool) : text(ACTS[act] ?? "waitAct", host || text("waitThisPage"));
  return { heading: text("waitApproval", what), subject: element, hint: text("waitApprovalHint") };
}
