// Check whether a form that was submitted is shown again, and what the page says about it.
const NOTICES = "[role=alert],[role=status],[aria-live]:not([aria-live=off]),[class*=error i],[class*=alert i],[class*=invalid i],[class*=danger i],[class*=success i]";
const ERROR_CLASS = /error|alert|invalid|danger/i;
const SUCCESS_CLASS = /success/i;
const ERROR_WORDS = /sorry|error|invalid|incorrect|wrong|fail|rejected|denied|required|try again|unable|(could|can|was|were|is|are)(n['’]t| ?not)\b|fehler|ungültig|fehlgeschlagen|错误|失败|无效|有误|重试/iu;
const MAX_FORM_FIELDS = 200;
const MAX_TEXTS_SHOWN = 2000;

const isOpenField = (element) => visible(element) && !matches(element, ":disabled,[readonly],[aria-disabled=true]");
const fieldKey = (element) =>
  `${tagOf(element)} ${attr(element, "type") ?? ""} ${attr(element, "name") || attr(element, "id") || attr(element, "placeholder") || attr(element, "aria-label") || ""}`;
const hasText = (element) => ["text", "rich"].includes(inputWay(element)) && (isNativeField(element) ? element.value : rawText(element)).trim() !== "";
const describeFields = (elements) => elements.filter(isOpenField).slice(0, MAX_FORM_FIELDS).map((element) => ({ key: fieldKey(element), hasText: hasText(element) }));

const formOf = (field) => (isNativeField(field) ? field.form : null) ?? closest(field, "form");
const fieldsOfForm = (field) => {
  const form = formOf(field);
  return form ? [...all(form, FIELDS)].filter((element) => formOf(element) === form) : [field];
};

// "error", "success" or "" of a text that the page marks as a notice.
const noticeKind = (element, text) => {
  const names = attr(element, "class") ?? "";
  if (ERROR_WORDS.test(text)) return "error";
  if (SUCCESS_CLASS.test(names)) return "success";
  return ERROR_CLASS.test(names) ? "error" : "";
};
const noticesShown = () => findRoots(document).flatMap(({ root }) => [...all(root, NOTICES)])
  .filter((element) => visible(element) && !matches(element, FIELDS) && one(element, FIELDS) === null)
  .map((element) => ({ element, text: lineOfText(element, 300) })).filter(({ text }) => text)
  .slice(0, MAX_TEXTS_SHOWN).map(({ element, text }) => ({ text, kind: noticeKind(element, text) }));

// The fields of the form that was filled last (null if none was, in this document), the page's usable fields, its notices and texts with their kinds.
const shownForm = () => {
  const filled = globalThis.continuityField?.deref();
  return {
    form: filled?.isConnected ? describeFields(fieldsOfForm(filled)) : null,
    fields: describeFields(findRoots(document).flatMap(({ root }) => [...all(root, FIELDS)])),
    notices: noticesShown(),
    lines: [...piecesShown().values()].filter(Boolean).slice(0, MAX_TEXTS_SHOWN).map((text) => ({ text: shorten(text, 300), kind: ERROR_WORDS.test(text) ? "error" : "" })),
    isPending: isBusy() || loadersShown() > 0 || [...piecesShown().values()].some((text) => LOADING_LINE.test(text)),
  };
};
