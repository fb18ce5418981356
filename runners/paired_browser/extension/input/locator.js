// Find the element that a reference names, wait until it is usable, and say why it is not.
import { now } from "../clock.js";
import { ContextLost, elementNotFound, invalidParameter, navigationTimeout } from "../failures.js";

const ANSWER_MS = 6000; // for the page's answer, beside the time in which it may search
const MAX_DOCUMENTS = 8;
const TWO_ELEMENTS = "two_elements"; // the problem of a reference

const MESSAGES = {
  hidden: "The element for {target} is hidden.",
  disabled: "The element for {target} is disabled.",
  readonly: "The field for {target} is read-only.",
  file: "The field for {target} is a file input; browser_upload gives it files.",
  not_a_field: "The element for {target} is not a field.",
  covered: "Another element covers the element for {target}.",
  moving: "The element for {target} keeps moving.",
  outside: "The element for {target} cannot be scrolled into view.",
  gone: "The element for {target} is no longer on the page; look at the page again.",
  not_focusable: "The element for {target} cannot have the focus.",
  other_origin: "The element for {target} is a frame of another origin, which gets no input; open its address as a page of its own.",
};
const NO_MATCH = "No element on the page matches {target}.";

// A reference: by clickId or XPath, or by both, which have to name the same element; else the field that has the focus.
export const referenceOf = ({ clickId, xpath }) => ({ mode: "pointed", click_id: clickId ?? null, xpath: xpath ?? null });
export const keyOf = ({ click_id: clickId, xpath }) => JSON.stringify([clickId, xpath]);

// The elements of an action's references, as the server judged them: {node, toNode?}.
export function judgedNodes(judged, params) {
  const nodes = new Map();
  if (judged) nodes.set(keyOf(referenceOf(params)), judged.node);
  if (judged?.toNode) nodes.set(keyOf(referenceOf({ clickId: params.toClickId, xpath: params.toXpath })), judged.toNode);
  return nodes;
}

export const hasTarget = ({ clickId, xpath }) => clickId != null || xpath != null;

export function nameOf({ click_id: clickId = null, xpath = null } = {}) {
  if (clickId !== null) return `the clickId ${clickId}`;
  return xpath ? `the XPath ${xpath}` : "the field that has the focus";
}

const namesTwoElements = (target) => invalidParameter(`clickId and xpath name two elements: ${nameOf(target)} and another. Give one of them.`,
  { reason: TWO_ELEMENTS, effect: "none" });

const withName = (template, target) => template.replace("{target}", () => nameOf(target));

// Wait until the element is present and usable; `until` and `answerBy` are times of performance.now().
//
// `willClick`: a mouse click follows; the page blocks it if it would hit another element. Returns {match, point, way,
// isSecret, key, url, documents}; the last is how many documents the tab had shown then.
export async function locateElement({ tab, pages }, target, purpose, { until, willClick = false, answerBy = Infinity }) {
  for (let visit = 0; visit < MAX_DOCUMENTS; visit += 1) {
    const left = Math.max(0, until - now());
    const { documents } = tab;
    const request = { locator: target, purpose, timeoutMs: Math.round(left), isGuarded: willClick, isSubmit: false };
    try {
      const answer = await pages.run(tab, "locate", request, Math.min(left + ANSWER_MS, answerBy - now()));
      if (answer.outcome === "changed") throw elementChanged(nameOf(target), answer.changed);
      if (answer.outcome !== "ready") throw notFound(answer, target, purpose, await tab.url());
      const point = answer.x === undefined || answer.x === null ? null : [answer.x, answer.y];
      return { ...answer, point, documents };
    } catch (error) {
      if (!(error instanceof ContextLost)) throw error;
    }
  }
  throw navigationTimeout("The page keeps navigating to other documents.", { url: await tab.url() });
}

// The failure for an element that is not as it was judged; `changed` is {fact: [before, after]}.
export function elementChanged(name, changed, effect = "none") {
  const differences = Object.fromEntries(Object.entries(changed).map(([fact, pair]) => [fact, pair.map(factText)]));
  const text = Object.entries(differences).map(([fact, [before, after]]) => `${fact}: “${before}”, now “${after}”`).join("; ");
  return elementNotFound(`The element for ${name} is not as it was judged: ${text}.`.slice(0, 1000), { reason: "changed", changed: differences, effect });
}

const factText = (fact) => (Array.isArray(fact)
  ? fact.map(({ method = "", action = "" }) => `${method.toUpperCase()} ${withoutQuery(action)}`).join("; ")
  : withoutQuery(String(fact))).slice(0, 300);
const withoutQuery = (text) => (/^(https?|about|file|data):/.test(text) ? text.replace(/\?.*$/s, "?***") : text);

export function notFound(answer, target, purpose, url) {
  if (answer.outcome === "bad_selector") {
    const name = nameOf(target);
    return invalidParameter(`${name[0].toUpperCase()}${name.slice(1)} is not a valid XPath.`);
  }
  const { reason, candidates, coveredBy } = answer;
  if (reason === TWO_ELEMENTS) throw namesTwoElements(target);
  const { node, compares, ...locator } = withoutNull(target ?? {});
  const details = { reason, locator, purpose, candidates: candidates ?? [], url, ...(coveredBy ? { coveredBy } : {}) };
  return elementNotFound(withName(MESSAGES[reason] ?? NO_MATCH, target), details);
}

const withoutNull = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));

// Throw the failure that the `problem` of a page's answer means; nothing was done.
export function requireFound(answer, target, url) {
  const { problem, coveredBy } = answer;
  if (problem === undefined) return;
  if (problem === "changed") throw elementChanged(nameOf(target), answer.changed);
  if (problem === TWO_ELEMENTS) throw namesTwoElements(target);
  if (problem === "bad_xpath") throw invalidParameter(`xpath: ${target.xpath} is not a valid XPath of elements.`, { effect: "none" });
  const details = { reason: problem, url, effect: "none", ...(coveredBy ? { coveredBy } : {}) };
  throw elementNotFound(withName(MESSAGES[problem] ?? NO_MATCH, target ?? referenceOf({})), details);
}

// The document of an element was replaced.
export const documentGone = (what, effect) =>
  elementNotFound(`The page navigated to another document ${what}.`, { reason: "gone", effect });
