// Find the element that a locator describes, in the document, shadow roots and same-origin frames: by a selector, by
// a reference, or by words that are matched against role, accessible name, label, placeholder and text in one ranking.
const GOOD_ENOUGH = 0.5;
const MAX_CANDIDATES = 5;
const MENUS = "nav,[role=navigation],[role=menu],[role=menubar],[role=tablist]";
// `text` is the text of a button or a link, which is its name; for a field, it is the text before the field.
const WEIGHTS = { label: 1, name: 1, placeholder: 0.95, text: 1, role: 0.75, attribute: 0.6 };
const TEXT_BEFORE_FIELD_WEIGHT = 0.9;
const FIELD = `${FIELDS},[role=checkbox],[role=radio],[role=switch],[role=combobox]`;
const TOGGLES = new Set(["checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"]);
const TYPE_WORDS = {
  search: "search", password: "password", email: "email", tel: "phone", url: "url website 网址", submit: "submit",
  date: "date", number: "number 数字", file: "file upload 文件 上传",
};
const MAY_LOOK_CLICKABLE = "div,span,li,td,img,svg,p,label,b,i,em,strong,h1,h2,h3,h4";

const isTextField = (element) => matches(element, FIELDS) && !TOGGLES.has(typeOfElement(element));
const isFillable = (element) => isTextField(element) || TOGGLES.has(typeOfElement(element));
const isClickable = (element) => !isTextField(element) && !hasIdleRole(element);

const kindOf = (element) => {
  const type = typeOfElement(element);
  if (type === "button" || type === "link" || type === "radio" || type === "tab") return type;
  if (type === "checkbox" || type === "switch") return "checkbox";
  if (type === "combobox" || type === "listbox") return tagOf(element) === "input" ? "field" : "choice";
  return isTextField(element) ? "field" : "button";
};

// The text before a field without a label: beside it, or in the cell or term before it.
const textBefore = (element) => {
  for (let node = element; node && !["form", "body", "fieldset"].includes(tagOf(node)); node = node.parentElement) {
    let before = node.previousSibling;
    while (before && !(nodeKind(before) === TEXT || nodeKind(before) === ELEMENT) ) before = before.previousSibling;
    while (before) {
      if (nodeKind(before) === ELEMENT && (matches(before, FIELD) || one(before, FIELD) !== null)) return "";
      const text = nodeKind(before) === ELEMENT && !visible(before) ? "" : lineOfText(before, 80);
      if (text) return text;
      before = before.previousSibling;
    }
    if (node !== element && rawText(node).length > 200) return "";
  }
  return "";
};

const namedBy = (element) => {
  const ids = (attr(element, "aria-labelledby") ?? "").split(/\s+/).filter(Boolean);
  const texts = ids.map((id) => rootNodeOf(element).getElementById?.(id)).filter(Boolean).map(rawText);
  return texts.join(" ") || attr(element, "aria-label") || "";
};

const imagesIn = (element) =>
  [...all(element, "[aria-label],[title],svg title,img[alt]")].map((node) =>
    attr(node, "aria-label") || attr(node, "alt") || attr(node, "title") || rawText(node)).join(" ");

const isInSearch = (element) => closest(element, "[role=search],search,form[action*=search i]") !== null;

// The texts that a query is matched against, by property.
const propertiesOf = (element) => {
  const tag = tagOf(element);
  const isField = isTextField(element) || TOGGLES.has(typeOfElement(element));
  const isInputButton = tag === "input" && typeOfElement(element) === "button";
  const labels = own(element, "labels") ? [...element.labels].map((label) => lineOfText(label, LABEL_LIMIT)).join(" ") : "";
  const isEmpty = isTextField(element) || tag === "input"; // its text is its value, not its name
  const text = isEmpty && isField ? (labels ? "" : textBefore(element)) : lineOfText(element, MAX_COMPARED);
  const inside = isField || text ? "" : imagesIn(element);
  const type = tag === "input" || tag === "button" ? (attr(element, "type") ?? "").toLowerCase() : "";
  const roleWords = [isField ? "" : typeOfElement(element), TYPE_WORDS[type] ?? "", isField && isInSearch(element) ? "search" : ""];
  return {
    label: labels,
    name: namedBy(element) || (isInputButton ? element.value || attr(element, "alt") || "" : "") || inside || attr(element, "title") || attr(element, "alt") || "",
    placeholder: attr(element, "placeholder") || attr(element, "aria-placeholder") || attr(element, "data-placeholder") || "",
    text: tag === "select" ? text : text || (isField ? "" : attr(element, "value") ?? ""),
    role: [...new Set(roleWords.filter(Boolean))].join(" "),
    attribute: [attr(element, "name"), attr(element, "id")].filter(Boolean).join(" ").replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/[_\-.[\]]+/g, " "),
  };
};

// How well an element matches a query, and by which of its properties.
const fitOf = (element, query) => {
  const kind = kindOf(element);
  const agrees = query.kinds.has(kind) || (query.kinds.has("field") && kind === "choice");
  let best = { score: 0, by: "role", matched: "" };
  for (const [by, text] of Object.entries(propertiesOf(element))) {
    if (!text) continue;
    const words = wordsOf(text);
    let score = similarity(query.whole, words);
    if (query.kinds.size) score = Math.max(score, similarity(query.rest, words) * (agrees ? 1 : 0.85));
    score *= by === "text" && isFillable(element) ? TEXT_BEFORE_FIELD_WEIGHT : WEIGHTS[by];
    if (score > best.score) best = { score, by, matched: shorten(collapse(text).trim(), LABEL_LIMIT) };
  }
  if (!agrees) return best;
  if (!query.rest.tokens.length) return { score: Math.max(best.score, 0.6), by: best.score > 0.6 ? best.by : "role", matched: best.matched || kind };
  return { ...best, score: best.score && Math.min(1, best.score + 0.03) };
};

const visibleLabel = (element) => TOGGLES.has(typeOfElement(element)) && [...(own(element, "labels") ?? [])].find((label) => visible(label) && boundsOf(label, 0, 0));
const shadowHost = (node) => (nodeKind(rootNodeOf(node)) === FRAGMENT ? hostOf(rootNodeOf(node)) : null);
const isInert = (element) => {
  for (let node = element; node; node = shadowHost(node)) {
    if (closest(node, INERT) !== null) return true;
  }
  return false;
};
// Why an element is not usable now, or "".
const hindrance = (element, purpose) => {
  const box = boxOf(element);
  const shown = visible(element) && box.width >= 1 && box.height >= 1;
  if ((!shown && !visibleLabel(element)) || isInert(element)) return "hidden";
  if (matches(element, ":disabled,.disabled,.disabled > *") || closest(element, "[aria-disabled=true]") !== null) return "disabled";
  if (purpose !== "field") return "";
  if (tagOf(element) === "input" && element.type === "file") return "file";
  if (isTextField(element) && tagOf(element) !== "select" && (element.readOnly || attr(element, "aria-readonly") === "true")) return "readonly";
  return "";
};

const chainOf = (element) => {
  const chain = [element];
  for (let root = rootNodeOf(element); root !== document; root = rootNodeOf(chain[0])) {
    const outer = nodeKind(root) === FRAGMENT ? hostOf(root) : viewOf(root)?.frameElement;
    if (!outer) break;
    chain.unshift(outer);
  }
  return chain;
};
// Document order across shadow roots and frames: the order of the outermost nodes that differ.
const comesBefore = (one_, other) => {
  const [first, second] = [chainOf(one_), chainOf(other)];
  let level = 0;
  while (first[level] === second[level] && level < Math.min(first.length, second.length) - 1) level += 1;
  return positionOf(first[level], second[level]) & 4 ? -1 : 1;
};

const controlIn = (element) => {
  if (isFillable(element)) return element;
  if (tagOf(element) === "label" && element.control) return element.control;
  const inside = all(element, FIELD);
  return inside.length === 1 ? inside[0] : null;
};

const byName = (found, by, matched, purpose) => {
  const candidates = purpose === "field" ? found.map((element) => controlIn(element)).filter(Boolean) : found;
  return {
    matched: found.length,
    fits: candidates.map((element) => ({ element, score: 1, by, matched })),
    enough: 0,
  };
};

const PURPOSES = {
  field: [FIELD, isFillable],
  clickable: [USABLE, isClickable],
  any: [`${USABLE},${FIELD}`, (element) => !hasIdleRole(element)],
};
const looksClickable = (element) => {
  if (matches(element, USABLE) || getComputedStyle(element).cursor !== "pointer") return false;
  const parent = element.parentElement;
  return !parent || getComputedStyle(parent).cursor !== "pointer";
};

const byWords = (roots, text, purpose) => {
  const query = queryOf(text);
  const [selector, isWanted] = PURPOSES[purpose];
  const fit = (elements) => elements.map((element) => ({ element, ...fitOf(element, query) }));
  const usable = roots.flatMap(({ root }) => [...all(root, selector)]).filter((element) => isWanted(element) && !isRepeated(element));
  let fits = fit(usable);
  if (purpose !== "field" && !fits.some(({ element, score }) => score >= GOOD_ENOUGH && !hindrance(element, purpose))) {
    // Listeners that a framework adds are not visible here, but the pointer cursor is.
    fits = [...fits, ...fit(roots.flatMap(({ root }) => [...all(root, MAY_LOOK_CLICKABLE)]).filter(looksClickable))];
  }
  return { matched: fits.length, fits, enough: GOOD_ENOUGH };
};

const ROUND = 1000;
const rounded = (score) => Math.round(score * ROUND) / ROUND;
const describeFit = ({ element, score, by, matched, hinders }) => ({
  type: typeOfElement(element), label: labelOf(element, typeOfElement(element), attributeNames(element)),
  score: rounded(score), by, matched, ...(hinders ? { hindrance: hinders } : {}),
});

const isOnly = (element, found) => found.length === 1 && found[0] === element;
// The element of a reference that was resolved before; else the one with this click id, which an XPath beside it has to name
// too; else the one that the XPath matches; else the field that has the focus.
const byReference = ({ click_id: clickId, xpath, node = null }, purpose) => {
  if (node !== null || clickId !== null) {
    const named = node !== null ? nodeNamed(node) : clickIds.elements.get(clickId)?.deref();
    if (!named || !isHere(named)) return { matched: 0, fits: [], enough: 0, failure: "gone" };
    if (node === null && xpath !== null && !isOnly(named, byPath(xpath))) return { matched: 0, fits: [], enough: 0, failure: "two_elements" };
    return byName([named], "clickId", String(clickId), purpose);
  }
  if (xpath !== null) return byName(byPath(xpath), "xpath", xpath, purpose);
  const active = deepActiveElement();
  return byName(active && isFillable(active) ? [active] : [], "focus", "", purpose);
};
const FITS = {
  selector: (roots, { selector }, purpose) => byName(roots.flatMap(({ root }) => [...all(root, selector)]), "selector", selector, purpose),
  semantic: (roots, { query }, purpose) => byWords(roots, query, purpose),
  pointed: (roots, locator, purpose) => byReference(locator, purpose),
  searchButton: (roots, locator, purpose) => byName(searchButtons().slice(0, 1), "role", "search", purpose),
};

// Of elements that fit equally well, those that may submit the field that was filled last come first.
const submitRank = (element, field) => {
  const menu = closest(element, MENUS);
  const form = own(element, "form") ?? closest(element, "form");
  return (form === closest(field, "form") ? 0 : 4) + (menu === null || isAround(menu, field) ? 0 : 2) + (typeOfElement(element) === "link" ? 1 : 0);
};

const search = (locator, purpose, isSubmit = false) => {
  const roots = findRoots(document);
  const { matched, fits, enough, failure } = FITS[locator.mode](roots, locator, purpose);
  if (failure) return { chosen: null, reason: failure, candidates: [], isFinal: true };
  for (const fit of fits) {
    fit.score = rounded(fit.score);
    if (fit.score >= enough || fit.score > 0.1) fit.hinders = hindrance(fit.element, purpose);
  }
  const field = isSubmit ? lastField() : null;
  for (const fit of fits) fit.rank = field && fit.score >= enough ? submitRank(fit.element, field) : 0;
  fits.sort((a, b) => b.score - a.score || a.rank - b.rank || comesBefore(a.element, b.element));
  const good = fits.filter(({ score, hinders }) => score >= enough && !hinders);
  if (good.length) {
    const equals = good.filter(({ score, rank }) => score === good[0].score && rank === good[0].rank).length;
    return { chosen: good[0], equals };
  }
  const blocked = fits.find(({ score }) => score >= enough);
  const similar = fits.filter(({ score }) => score > 0.1);
  const near = (similar.length ? similar : fits.filter(({ element }) => !hindrance(element, purpose))).slice(0, MAX_CANDIDATES);
  return { chosen: null, reason: blocked ? blocked.hinders : matched && locator.mode !== "semantic" ? "not_a_field" : "no_match", candidates: near.map(describeFit) };
};
