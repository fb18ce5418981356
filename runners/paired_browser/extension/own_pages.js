// Recognize pages on which agents must not act: those of the product itself, where an agent could confirm what a person has
// to confirm, those of the browser, and those of an origin on which an action was not allowed.
import { elementNotFound, invalidTarget } from "./failures.js";

const OWN = "This is a page of the product itself, on which agents must not act.";
const BROWSER = "This is a page of the browser, on which agents must not act.";
const OPEN_TO_AGENTS = /^(https?|about|data|blob|file|chrome-error):/;

const LOCAL = "localhost"; // stands for every name and address of this machine

// A function that says whether a URL is one of the product's own: at one of its origins, or one of the pages that may send
// this extension messages; in whatever way its host is written.
export function ownPages(origins, patterns = chrome.runtime.getManifest().externally_connectable?.matches ?? []) {
  const own = new Set(origins.map((origin) => canonical(new URL(origin)).origin));
  const expressions = patterns.map((pattern) => patternExpression(pattern.replace(/:\/\/127\.0\.0\.1(?=[:/])/, `://${LOCAL}`)));
  return (address) => {
    let url;
    try {
      url = canonical(new URL(address.replace(/^(view-source:|blob:)+/, "")));
    } catch {
      return false;
    }
    return own.has(url.origin) || expressions.some((expression) => expression.test(url.href));
  };
}

// The same URL with one spelling of its host: without the final dot of a name, and with `localhost` for what means this machine:
// the names below localhost, and the loopback and unspecified addresses, also as IPv6. Chrome has read numbers such as 127.1.
function canonical(url) {
  const host = url.hostname.replace(/\.+$/, "");
  const plain = ipv4Of(host) ?? host;
  const isLocal = plain === LOCAL || plain.endsWith(`.${LOCAL}`) || /^(127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1?\])$/.test(plain);
  const changed = new URL(url);
  changed.hostname = isLocal ? LOCAL : plain;
  return changed;
}

// The IPv4 address that an IPv6 address is mapped to, as Chrome writes it: [::ffff:7f00:1].
function ipv4Of(host) {
  const mapped = /^\[::ffff:([\da-f]{1,4}):([\da-f]{1,4})\]$/.exec(host);
  if (!mapped) return null;
  const [high, low] = mapped.slice(1).map((part) => parseInt(part, 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
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
