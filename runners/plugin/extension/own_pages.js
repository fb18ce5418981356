// Recognize pages on which agents must not act: those of the product itself, where an agent could confirm what a person has
// to confirm, those of the browser, and those of an origin on which an action was not allowed.
import { elementNotFound, invalidTarget } from "./failures.js";

const OWN = "This is a page of the product itself, on which agents must not act.";
const BROWSER = "This is a page of the browser, on which agents must not act.";
const OPEN_TO_AGENTS = /^(https?|about|data|blob|file|chrome-error):/;

// A function that says whether a URL is one of the product's own: at one of its origins, or one of the pages that may send
// this extension messages.
export function ownPages(origins, patterns = chrome.runtime.getManifest().externally_connectable?.matches ?? []) {
  const own = new Set(origins.map((origin) => new URL(origin).origin));
  const expressions = patterns.map(patternExpression);
  return (address) => {
    let url;
    try {
      url = new URL(address.replace(/^(view-source:|blob:)+/, ""));
    } catch {
      return false;
    }
    return own.has(url.origin) || expressions.some((expression) => expression.test(url.href));
  };
}

// Throw INVALID_TARGET if agents must not act on the page of this URL.
export function refuseOwnPage(url, isOwn) {
  if (isOwn(url)) throw invalidTarget(OWN, { host: hostOf(url) });
  if (url && !OPEN_TO_AGENTS.test(url)) throw invalidTarget(BROWSER);
}

// Throw ELEMENT_NOT_FOUND if the page of this URL is not of the origin on which the action was allowed ("": any).
export function refuseOtherOrigin(url, expected) {
  if (!expected || originOf(url) === expected) return;
  throw elementNotFound(`The tab shows another page by now, not one of ${expected}; look at the page again.`,
    { reason: "gone", url, effect: "none" });
}

// The origin of a URL; "null" or "" if it has none.
export function originOf(url) {
  try {
    return new URL(url).origin;
  } catch {
    return "";
  }
}

function hostOf(address) {
  return new URL(address.replace(/^(view-source:|blob:)+/, "")).hostname.slice(0, 253);
}

// A match pattern of a manifest as a regular expression.
export function patternExpression(pattern) {
  const [, scheme, host, path] = /^([^:]+):\/\/([^/]*)(\/.*)$/.exec(pattern);
  const schemes = scheme === "*" ? "https?" : escaped(scheme);
  const hosts = host === "*" ? "[^/]+" : host.startsWith("*.") ? `([^/]+\\.)?${escaped(host.slice(2))}` : escaped(host);
  return new RegExp(`^${schemes}://${hosts}${path.split("*").map(escaped).join(".*")}$`);
}

const escaped = (text) => text.replace(/[.+?^${}()|[\]\\]/g, "\\$&");
