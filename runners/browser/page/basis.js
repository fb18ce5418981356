// What an action is judged by: its element, under a name that no element of another document has, and the facts that a person
// sees of it. The facts stay in this world, with whole addresses: before the input they are compared with what they are then.
const nodes = (globalThis.continuityNodes ??= { names: new WeakMap(), elements: new Map(), judged: new Map() });
const nameOfNode = (element) => {
  if (!nodes.names.has(element)) {
    const name = crypto.getRandomValues(new Uint32Array(4)).join("-");
    nodes.names.set(element, name);
    nodes.elements.set(name, new WeakRef(element));
  }
  return nodes.names.get(element);
};
const nodeNamed = (name) => nodes.elements.get(name)?.deref() ?? null;

const MAX_SUBMISSIONS = 5;
const MAX_NAME = 300;
// A text that is bound whole: a long one is cut, and named by a mark that no other text of this document has.
const textMarks = (nodes.marks ??= new Map());
const markOf = (text) => {
  if (!textMarks.has(text)) textMarks.set(text, crypto.getRandomValues(new Uint32Array(4)).join("-"));
  return textMarks.get(text);
};
const bound = (text) => (text.length <= MAX_NAME ? text : `${cut(text, MAX_NAME)}… ${markOf(text)}`);
// What may change while a person decides, in a link that opens another page and submits nothing, since that page is bound: a
// count in parentheses at the end, and a clock with seconds. What else has a number in its name does something with so many.
const COUNT = /(?<=\S\s*)\(\p{Nd}{1,4}\)$/u;
const CLOCK = /(?<!\p{Nd}|:)\p{Nd}{1,2}:\p{Nd}{2}:\p{Nd}{2}(?!\p{Nd}|:)/gu;
const MONEY = /\p{Sc}|\b(usd|eur|gbp|chf|jpy|cny|rmb|inr|aud|cad|kr|dollars?|euros?)\b|[元円원₽]/iu;
const mayCount = ({ role, link, frame, submits }) => role === "link" && /^https?:/.test(link) && link !== frame && !submits.length;
const withCountsAlike = (text, facts) => (!mayCount(facts) || MONEY.test(text) ? text : text.replace(COUNT, "(0)").replace(CLOCK, "0:00:00"));
// All that names an element, or the elements in it that can be used.
const wordsToBind = (element, isNamedByText) => {
  const named = isNamedByText ? [element] : isTextField(element) ? [] : renderedIn([element]).filter((node) => matches(node, USABLE));
  const wordsIn = (node) => [...fieldLabels(node), ...["aria-label", "title", "alt"].map((name) => attr(node, name)),
    matches(node, "input:is([type=button],[type=submit],[type=reset])") ? node.value : "", lineOfText(node, Infinity)];
  return [...new Set(named.flatMap(wordsIn).map((text) => collapse(text ?? "").trim()).filter(Boolean))];
};

const withoutFragment = (address, element) => {
  const url = URL.parse(address, baseOf(element));
  if (!url) return "";
  url.hash = "";
  return url.href;
};
const addressOfDocument = (element) => withoutFragment(viewOf(documentOf(element)).location.href, element);
// What a form sends, as far as it can be seen: the submitter's own pair, and each field's. Of passwords and secrets only whether
// they change; a hidden token of the server is left out, because pages renew theirs. `typed`: the field that the call writes.
const TOKEN_NAME = /csrf|xsrf|token|nonce|viewstate|captcha/i;
const controlsOf = getter(HTMLFormElement.prototype, "elements");
const isServerToken = (field) => field.type === "hidden" && TOKEN_NAME.test(field.name) && /^[\w+/=.:-]{16,}$/.test(field.value);
const valuesOf = (field) => {
  if (["checkbox", "radio"].includes(field.type)) return field.checked ? [field.value] : [];
  return tagOf(field) === "select" ? [...field.selectedOptions].map(({ value }) => value) : [field.value];
};
const sentBy = (form, submitter, typed) => {
  const fields = [...controlsOf(form)].filter((field) => matches(field, "input[name],select[name],textarea[name]") && field !== typed && !matches(field, ":disabled") &&
    !["submit", "image", "button", "reset"].includes(field.type) && !isServerToken(field));
  const pairs = fields.flatMap((field) => valuesOf(field).map((value) =>
    [attr(field, "name"), field.type === "password" || isSecretField(field) ? (value ? `*** ${markOf(value)}` : "") : value]));
  if (submitter && attr(submitter, "name")) pairs.unshift([attr(submitter, "name"), attr(submitter, "value") ?? ""]);
  return bound(pairs.map(([name, value]) => `${name}=${value}`).join("; "));
};
const submissionOf = (form, submitter, typed) => {
  const given = (name) => (submitter && attr(submitter, `form${name}`)) ?? attr(form, name) ?? "";
  return {
    by: submitter ? labelOf(submitter, typeOfElement(submitter), attributeNames(submitter)) : "",
    method: (given("method") || "get").toLowerCase(), action: given("action") ? withoutFragment(given("action"), form) : addressOfDocument(form),
    sent: sentBy(form, submitter, typed),
  };
};
// Everything that is drawn in elements: also what is in shadow roots there, and in their slots.
const renderedIn = (elements) => {
  const found = new Set();
  const roots = [...elements];
  for (const root of roots) {
    for (const node of [...(nodeKind(root) === ELEMENT ? [root] : []), ...all(root, "*")]) {
      if (found.has(node)) continue;
      found.add(node);
      if (shadowOf(node)) roots.push(shadowOf(node));
      if (tagOf(node) === "slot") roots.push(...assignedTo(node).filter((one_) => nodeKind(one_) === ELEMENT));
    }
  }
  return [...found];
};
const submitterOf = (node) => [node, tagOf(node) === "label" ? node.control : null].find((one_) => one_ && submitsForm(one_));
// What a press that `activates` an element may submit: by the element, by what is around it or in it, and by labels.
const submittersOf = (element) => {
  const nodes_ = renderedIn([element, ...(own(element, "labels") ?? [])]);
  for (let node = element; node; node = renderedAround(node)) if (nodeKind(node) === ELEMENT) nodes_.unshift(node);
  return [...new Set(nodes_.map(submitterOf).filter(Boolean))];
};
const firstSubmitter = (form) => [...all(rootNodeOf(form), "button,input")].find((one_) => submitsForm(one_) && one_.form === form);
// What Enter submits in a field, a list or any other part of a form, except a button: the form, by its first submit button.
const formsByEnter = (element) => [...new Set(renderedIn([element])
  .filter((node) => !matches(node, "button,a[href],summary,input:is([type=button],[type=reset],[type=submit],[type=image],[type=file])"))
  .map((node) => own(node, "form") ?? (node === element ? closest(node, "form") : null)).filter(Boolean))];
// Each way in which the input may submit a form, as [form, its submitter if it has one].
const waysToSubmit = (element, way) => {
  if (way === "set") return [];
  const byEnter = way === "enter" ? formsByEnter(element).map((form) => [form, firstSubmitter(form)]) : [];
  if (byEnter.length && isTextField(element)) return byEnter;
  return [...byEnter, ...submittersOf(element).map((submitter) => [submitter.form, submitter])];
};
const submissions = (element, way, typed = null) => waysToSubmit(element, way).slice(0, MAX_SUBMISSIONS).map(([form, submitter]) => submissionOf(form, submitter, typed));
const submittedBy = (element, way) => waysToSubmit(element, way).map(([form, submitter]) => submitter ?? form);
// Enter in a field without a form: scripts send what was written.
const isSentByEnter = (element, way) => way === "enter" && isTextField(element) && tagOf(element) !== "select";

const factsOf = (element, way, typed) => {
  const control = hiddenControlOf(element) ?? element;
  const type = typeOfElement(control);
  const link = closest(element, "a[href],area[href]");
  const isNamedByText = matches(control, "a,button,summary,label,[role]") && !isTextField(control);
  const facts = {
    role: kindWord(control, type), name: labelOf(control, type, attributeNames(control)) || (isTextField(control) ? textBefore(control) : ""),
    submits: submissions(element, way, typed), sends: isSentByEnter(element, way),
    link: link ? withoutFragment(attr(link, "href"), link) : "", frame: addressOfDocument(element), page: withoutFragment(location.href, document),
  };
  return { ...facts, text: bound(wordsToBind(control, isNamedByText).map((text) => withCountsAlike(text, facts)).join(" | ")) };
};
const stable = (facts) => ({ ...facts, name: withCountsAlike(facts.name, facts) });

// What differs in the facts of an element since it was judged, as {fact: [before, after]}; null if nothing does.
const withoutSent = (facts) => ({ ...facts, submits: facts.submits.map((one_) => ({ ...one_, sent: "" })) });
const changeOf = (element, isBefore) => {
  const judged = nodes.judged.get(nameOfNode(element));
  if (!judged) return { role: ["not judged", ""] };
  const facts = factsOf(element, judged.way, judged.typed);
  // Once input has begun, the page may note it in fields.
  const [before, after] = [judged.facts, facts].map(stable).map((one_) => (isBefore ? one_ : withoutSent(one_)));
  const differing = Object.keys(after).filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  return differing.length ? Object.fromEntries(differing.map((name) => [name, [judged.facts[name], facts[name]]])) : null;
};
// The element of the action that is performed, if it is to be as it was judged; and what differs in it.
const expectJudged = (element, locator) => {
  globalThis.continuityExpected = typeof locator?.compares === "boolean" ? { element, compares: locator.compares } : null;
};
// A search that is made again has to find the judged element: a reference names it itself.
const differenceFrom = (locator, expected, element) => {
  const isSearched = locator === null || locator.mode === "semantic" || locator.mode === "selector";
  expectJudged(element, isSearched ? expected : locator);
  const { node } = (isSearched && expected) || {};
  return node && node !== nameOfNode(element) ? { element: [nodes.judged.get(node)?.facts.name ?? "", labelOf(element, typeOfElement(element), attributeNames(element))] } : null;
};
// What was not confirmed may change, but not submit what it did not when policy decided on it.
const unjudgedSubmission = (element) => {
  const judged = nodes.judged.get(nameOfNode(element));
  if (!judged || submittedBy(element, judged.way).every((one_) => judged.submittedBy.has(one_))) return null;
  return { submits: [judged.facts.submits, submissions(element, judged.way)] };
};
const changeOfExpected = (isBefore = false) => {
  const { element, compares } = globalThis.continuityExpected ?? {};
  if (!element) return null;
  return (compares ? changeOf(element, isBefore) : null) ?? unjudgedSubmission(element);
};
const expectedChange = () => ({ changed: changeOfExpected() });

const linesOf = (element) => {
  const secrets = findSecrets(findRoots(document).map(({ root }) => root));
  const clickId = clickIds.ids.get(element);
  const line = masked(elementWords(element, secrets), secrets.values).toWellFormed();
  return { line: clickId ? `[${clickId}] ${line}` : line, secrets };
};
const judgedElement = (element, way, typed) => {
  const facts = factsOf(element, way, typed);
  nodes.judged.set(nameOfNode(element), { way, typed, facts, submittedBy: new WeakSet(submittedBy(element, way)) });
  const { line, secrets } = linesOf(element);
  const shown = JSON.parse(JSON.stringify(facts, (key, value) => (typeof value === "string" ? masked(value, secrets.values).toWellFormed() : value)));
  return { outcome: "judged", node: nameOfNode(element), line, facts: shown, stable: stable(shown), title: titleOf(document), isSecret: fieldInfo(element).isSecret };
};

// The element at a point of the viewport that a click there uses.
const usedAt = ({ x, y }) => {
  const hit = deepestAt(x, y);
  for (let node = hit; node; node = renderedAround(node)) if (nodeKind(node) === ELEMENT && matches(node, USABLE)) return node;
  return hit;
};
const asFound = (element, reason) => (element ? { chosen: { element } } : { reason, candidates: [] });
const FINDERS = {
  point: ({ point }) => asFound(usedAt(point), "outside"),
  keys: ({ locator }) => {
    if (!locator) return asFound(deepActiveElement() ?? rootOf(document), "no_match");
    const { element, problem } = referenced(locator);
    return { ...asFound(element, problem), isFinal: problem === "two_elements" || problem === "gone" };
  },
};
const judgeOnce = (request) => {
  const { locator, purpose, way, to, isSubmit } = request;
  const { chosen, reason, candidates, isFinal, key } = FINDERS[purpose] ? FINDERS[purpose](request)
    : locator ? search(locator, purpose, isSubmit) : defaultSubmit();
  if (!chosen) return { outcome: reason === "bad_xpath" ? "bad_selector" : "missing", reason, candidates, isFinal };
  const destination = to ? referenced(to) : {};
  if (destination.problem) return { outcome: "missing", reason: destination.problem, candidates: [], isFinal: destination.problem !== "no_match" };
  const judged = judgedElement(chosen.element, key ? "enter" : way, purpose === "field" ? chosen.element : null);
  return { ...judged, to: destination.element ? { node: nameOfNode(destination.element), line: linesOf(destination.element).line } : null };
};
// Find the element of an action, wait until it is there, and return the facts that the action is judged by.
const judge = async (request) => {
  const deadline = now() + request.timeoutMs;
  try {
    for (;;) {
      const answer = judgeOnce(request);
      if (answer.outcome === "judged" || answer.isFinal || now() >= deadline) return answer;
      await sleep(Math.min(100, Math.max(1, deadline - now())));
    }
  } catch (error) {
    if (error instanceof DOMException && error.name === "SyntaxError") return { outcome: "bad_selector" };
    throw error;
  }
};
// Before a click at a point: let only the judged element receive it.
const expectAt = ({ node, compares, x, y }) => {
  const element = nodeNamed(node);
  if (!element || !isHere(element)) return { problem: "gone" };
  const hit = deepestAt(x, y);
  if (!hit || !activates(element, hit)) return { problem: "moving" };
  expectJudged(element, { compares });
  const changed = changeOfExpected(true);
  if (changed) return { problem: "changed", changed };
  globalThis.continuityJudgedPoint = element; // for pointReady
  return {};
};
