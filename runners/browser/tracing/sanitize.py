"""Sanitize a Playwright trace: write a new zip with only the data that is listed here.

Removed are cookies, headers that may contain credentials, request bodies, response bodies other
than styles, images and fonts, values of fields, typed text, console output other than errors and
warnings, and our own stack traces. The value of a secret field is masked everywhere else as well.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, urlencode, urlsplit

from runners.browser.page_scripts import looks_secret
from runners.browser.tracing.snapshots import MASK, SnapshotCleaner

Line = dict[str, Any]

MAX_LINES_BYTES = 64 * 1024 * 1024  # a longer trace is discarded
# Bytes of lines times secrets to search for: about a third of a second of work that holds the GIL.
MAX_SEARCH_BYTES = 128 * 1024 * 1024
MAX_RESOURCE_BYTES = 1024 * 1024
VISUAL_TYPES = re.compile(r"text/css|image/|font/|application/(?:x-)?font")
ALLOWED_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "age",
        "allow",
        "cache-control",
        "content-disposition",
        "content-encoding",
        "content-language",
        "content-length",
        "content-security-policy",
        "content-type",
        "date",
        "etag",
        "expires",
        "host",
        "last-modified",
        "origin",
        "retry-after",
        "server",
        "user-agent",
        "vary",
    }
)
URL_HEADERS = frozenset({"location", "referer"})
CONTEXT_KEYS = (
    "version",
    "type",
    "origin",
    "browserName",
    "playwrightVersion",
    "platform",
    "wallTime",
    "monotonicTime",
    "sdkLanguage",
)
CALL_KEYS = (
    "type",
    "callId",
    "parentId",
    "startTime",
    "endTime",
    "title",
    "class",
    "method",
    "point",
)
PARAM_KEYS = ("x", "y", "deltaX", "deltaY", "button", "clickCount")
ENTRY_KEYS = (
    "pageref",
    "startedDateTime",
    "time",
    "timings",
    "_frameref",
    "_monotonicTime",
    "_resourceType",
)
LOGGED_TYPES = frozenset({"error", "warning"})
PAGE_TEXT_KEYS = frozenset(
    {
        "html",
        "url",
        "frameUrl",
        "redirectURL",
        "value",
        "text",
        "message",
        "title",
    }
)
# Names of URL parameters that carry credentials, besides the names of secret fields.
_KEYS = re.compile(
    r"sess|auth(?![a-z])|(?<![a-z])(?:sid|sig|signature|key|code|ticket)(?![a-z])", re.IGNORECASE
)
_PARAMETER = re.compile(r";([^/;=?#&]*)=[^/;?#&]*")  # in a path, such as ;jsessionid=…
MIN_DISTINCTIVE_LENGTH = 8  # a shorter secret is masked only where it is a separate word
MIN_KEY_LENGTH = 24  # a longer value in a query is probably a key


def clean_trace(raw: Path, max_bytes: int) -> bytes | None:
    """Return a trace file of the driver as a zip without secrets.

    Images and styles are omitted, the largest first, if the zip exceeded `max_bytes` with them.
    Returns None if it is too long without them, or if cleaning is too much work: the trace is too
    long, has too many secret fields, or is nested too deeply.
    """
    try:
        return _clean(raw, max_bytes)
    except RecursionError:
        return None


def _clean(raw: Path, max_bytes: int) -> bytes | None:
    with zipfile.ZipFile(raw) as source:
        sizes = {entry.filename: entry.file_size for entry in source.infolist()}
        texts = [name for name in sizes if name.endswith((".trace", ".network"))]
        if (length := sum(sizes[name] for name in texts)) > MAX_LINES_BYTES:
            return None
        cleaner = _Cleaner()
        cleaned = {name: cleaner.lines(source.read(name)) for name in texts}
        # The values of all secret fields are known only after all lines were cleaned.
        if length * len(cleaner.secrets) > MAX_SEARCH_BYTES:
            return None
        pattern = _pattern_of(cleaner.secrets)
        files = {name: _serialized(lines, pattern) for name, lines in cleaned.items()}
        resources = sorted(cleaner.resources & sizes.keys(), key=lambda name: sizes[name])
        small = [name for name in resources if sizes[name] <= MAX_RESOURCE_BYTES]
        return _zipped(files, source, small, max_bytes)


def _zipped(
    files: Mapping[str, bytes], source: zipfile.ZipFile, resources: Iterable[str], max_bytes: int
) -> bytes | None:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name, text in files.items():
            target.writestr(name, text)
        directory = 200 * len(files)
        for name in resources:  # smallest first
            data, directory = source.read(name), directory + 200
            if out.tell() + len(data) + directory > max_bytes:
                break
            target.writestr(name, data)
    return out.getvalue() if out.tell() <= max_bytes else None


class _Cleaner:
    """Cleans the lines of one trace and collects the resource files and secrets in them."""

    def __init__(self) -> None:
        self.resources: set[str] = set()
        self._snapshots = SnapshotCleaner(clean_address)

    def lines(self, text: bytes) -> list[Line]:
        """Return the cleaned lines; some are removed."""
        cleaned = (self._line(json.loads(line)) for line in text.splitlines() if line)
        return [line for line in cleaned if line is not None]

    @property
    def secrets(self) -> set[str]:
        """The values of secret fields, plain and URL-encoded."""
        values = self._snapshots.secrets
        return {form for value in values for form in (value, quote(value), quote_plus(value))}

    def _line(self, line: Line) -> Line | None:
        clean = {
            "context-options": _context_options,
            "before": _call,
            "after": _call,
            "input": _call,
            "console": _console,
            "event": _event,
            "frame-snapshot": self._snapshot,
            "resource-snapshot": self._exchange,
        }.get(line["type"])
        return None if clean is None else clean(line)

    def _snapshot(self, line: Line) -> Line:
        snapshot = self._snapshots.clean(line["snapshot"])
        files = [override.get("file") for override in snapshot.get("resourceOverrides", [])]
        self.resources.update(name for name in files if isinstance(name, str))
        return {"type": line["type"], "snapshot": snapshot}

    def _exchange(self, line: Line) -> Line:
        entry = line["snapshot"]
        request, response = entry["request"], entry["response"]
        content = {key: response["content"].get(key) for key in ("size", "mimeType")}
        file = response["content"].get("_file")
        if file and VISUAL_TYPES.match(str(content["mimeType"])):
            content["_file"] = file
            self.resources.add(file)
        cleaned = _pick(entry, ENTRY_KEYS)
        cleaned["request"] = {
            **_pick(request, ("method", "httpVersion")),
            "url": clean_address(request["url"]),
            "cookies": [],
            "queryString": [],
            "headers": _headers(request["headers"]),
            "headersSize": -1,
            "bodySize": request.get("bodySize", -1),
        }
        cleaned["response"] = {
            **_pick(
                response, ("status", "statusText", "httpVersion", "_failureText", "_transferSize")
            ),
            "cookies": [],
            "headers": _headers(response["headers"]),
            "content": content,
            "headersSize": -1,
            "bodySize": response.get("bodySize", -1),
            "redirectURL": clean_address(response.get("redirectURL", "")),
        }
        return {"type": line["type"], "snapshot": cleaned | {"cache": {}}}


def _pattern_of(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """Return a pattern that finds these secrets: short ones only as separate words."""
    forms = [
        rf"(?<![A-Za-z0-9]){literal}(?![A-Za-z0-9])"
        if len(text) < MIN_DISTINCTIVE_LENGTH
        else literal
        for text in sorted(secrets, key=len, reverse=True)
        for literal in (re.escape(text),)
    ]
    return re.compile("|".join(forms)) if forms else None


def _serialized(lines: list[Line], pattern: re.Pattern[str] | None) -> bytes:
    """Return the lines as a file, with the secrets of the pattern masked."""
    masked = lines if pattern is None else [_masked(line, pattern) for line in lines]
    return b"".join(json.dumps(line).encode() + b"\n" for line in masked)


def _masked(line: Any, pattern: re.Pattern[str], key: str = "") -> Any:
    """Return a line with a pattern masked in the texts of the page, not in Playwright's own."""
    if isinstance(line, str):
        return pattern.sub(MASK, line) if key in PAGE_TEXT_KEYS else line
    if isinstance(line, dict):
        # Every attribute below "html" is a text of the page.
        return {
            name: _masked(value, pattern, "html" if key == "html" else name)
            for name, value in line.items()
        }
    if not isinstance(line, list):
        return line
    is_node = key == "html" and len(line) > 1 and isinstance(line[1], dict)
    tag = line[:1] if is_node else []
    return [*tag, *(_masked(value, pattern, key) for value in line[len(tag) :])]


def clean_address(url: str) -> str:
    """Return a URL without credentials.

    User and password are removed; parameters of the path, and values in query and fragment that
    look like keys, are replaced by `***`. A data: URL other than an image loses its content.
    """
    if url.startswith("data:"):
        return url if url.startswith("data:image/") else url.partition(",")[0] + ","
    try:
        parts = urlsplit(url)
    except ValueError:
        return MASK
    host = parts.netloc.rpartition("@")[2]
    path = _PARAMETER.sub(rf";\1={MASK}", parts.path)
    query = _query(_PARAMETER.sub(rf";\1={MASK}", parts.query))
    fragment = _query(parts.fragment) if "=" in parts.fragment else parts.fragment
    return parts._replace(netloc=host, path=path, query=query, fragment=fragment).geturl()


def _query(query: str) -> str:
    pairs = parse_qsl(query, keep_blank_values=True)
    clean = [
        (name, MASK if _is_key(name) or len(value) >= MIN_KEY_LENGTH else value)
        for name, value in pairs
    ]
    return query if clean == pairs else urlencode(clean, safe="*")


def _is_key(name: str) -> bool:
    return looks_secret(name) or _KEYS.search(name) is not None


def _headers(headers: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
    allowed = []
    for header in headers:
        name = header["name"].lower()
        if name in ALLOWED_HEADERS:
            allowed.append(header)
        elif name in URL_HEADERS:
            allowed.append({"name": header["name"], "value": clean_address(header["value"])})
    return allowed


def _pick(source: Mapping[str, Any], keys: Iterable[str]) -> Line:
    return {key: source[key] for key in keys if key in source}


def _context_options(line: Line) -> Line:
    options = _pick(line.get("options", {}), ("viewport",))
    return _pick(line, CONTEXT_KEYS) | {"options": options}


def _call(line: Line) -> Line:
    cleaned = _pick(line, CALL_KEYS)
    params = line.get("params", {})
    if line["type"] == "before":
        typed = {"text": MASK} if "text" in params else {}
        cleaned["params"] = {**_pick(params, PARAM_KEYS), **typed}
    return cleaned


def _console(line: Line) -> Line | None:
    """Return a console message that is an error or a warning; other messages may be anything."""
    if line.get("messageType") not in LOGGED_TYPES:
        return None
    source = line.get("location", {})
    position = _pick(source, ("lineNumber", "columnNumber"))
    location = {**position, "url": clean_address(source.get("url", ""))}
    text = {"text": str(line.get("text", ""))[:2000]}
    return _pick(line, ("type", "messageType", "time", "pageId")) | text | {"location": location}


def _event(line: Line) -> Line:
    params = line.get("params", {})
    cleaned = _pick(params, ("pageId",))
    if line.get("method") == "pageError":
        error = params.get("error", {}).get("error", {})
        message = str(error.get("message", ""))[:2000]
        sanitized = {"name": str(error.get("name", "")), "message": message, "stack": ""}
        cleaned["error"] = {"error": sanitized}
    return _pick(line, ("type", "time", "class", "method")) | {"params": cleaned}
