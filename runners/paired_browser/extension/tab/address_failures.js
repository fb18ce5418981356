// The failure that an error of the browser means for a navigation, in the words of the worker's browser.
import { navigationFailed, navigationTimeout } from "../failures.js";

const TIMED_OUT = new Set(["ERR_TIMED_OUT", "ERR_CONNECTION_TIMED_OUT"]);
const MESSAGES = {
  ERR_NAME_NOT_RESOLVED: "The host name {host} cannot be resolved.",
  ERR_CONNECTION_REFUSED: "{host} refused the connection: nothing answers there.",
  ERR_CONNECTION_RESET: "{host} reset the connection.",
  ERR_CONNECTION_CLOSED: "{host} closed the connection without an answer.",
  ERR_EMPTY_RESPONSE: "{host} closed the connection without an answer.",
  ERR_ADDRESS_UNREACHABLE: "{host} cannot be reached from this machine.",
  ERR_INTERNET_DISCONNECTED: "This machine has no network connection.",
  ERR_TOO_MANY_REDIRECTS: "The address redirects without end.",
  ERR_INVALID_REDIRECT: "The address redirects to something that is not a URL.",
  ERR_UNSAFE_REDIRECT: "The address redirects to a URL that may not be opened.",
  ERR_UNSAFE_PORT: "The browser does not open that port.",
  ERR_INVALID_HTTP_RESPONSE: "{host} answered with something that is not HTTP.",
  ERR_CONTENT_DECODING_FAILED: "{host} sent a body that does not match its Content-Encoding.",
  ERR_INCOMPLETE_CHUNKED_ENCODING: "{host} closed the connection in the middle of the page.",
  ERR_CONTENT_LENGTH_MISMATCH: "{host} closed the connection in the middle of the page.",
  ERR_HTTP_RESPONSE_CODE_FAILURE: "{host} answered with an error status and an empty page.",
  ERR_ABORTED: "The address did not return a page (no content, or a file to download).",
};

export function navigationFailure(errorText, url) {
  const name = /net::(ERR_[A-Z0-9_]+)/.exec(errorText)?.[1];
  if (!name) return navigationFailed("The browser could not open the page.", { url });
  const { host } = new URL(url);
  const details = { netError: name, url };
  if (TIMED_OUT.has(name)) return navigationTimeout(`${host} did not answer in time.`, details);
  if (/^ERR_(CERT|SSL|BAD_SSL)_/.test(name)) return navigationFailed(`${host} has no trusted TLS certificate or connection.`, details);
  return navigationFailed((MESSAGES[name] ?? "The browser could not open {host}.").replace("{host}", () => host), details);
}

export const noAnswer = (url, ms, what = "The server") =>
  navigationTimeout(`${what} did not answer within ${Math.max(1, Math.round(ms / 1000))} s.`, { url, reason: "no_answer" });

export const unfinishedPage = (url) =>
  navigationTimeout("The server answered, but the page did not finish loading in time.", { url, reason: "unfinished" });
