"""What of a Playwright trace may be kept: the zip is written anew, with nothing in it that is not
named here.

Gone are cookies, headers that may hold credentials, bodies that were sent, bodies that were
received unless they are for the eye (styles, pictures, fonts), what fields hold, what was typed,
what scripts logged, and stacks of ours. The value of a secret field is masked wherever else it
stands.
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

RAW_BYTES = 64 * 1024 * 1024  # of lines; what is longer is not worth a worker's time
# Bytes of lines times texts that are looked for in them: a third of a second or so, in which
# nothing else of this process gets on.
SEARCHED = 128 * 1024 * 1024
RESOURCE_BYTES = 1024 * 1024
FOR_THE_EYE = re.compile(r"text/css|image/|font/|application/(?:x-)?font")
HEADERS = frozenset(
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
ADDRESSES = frozenset({"location", "referer"})
BEGINNING = (
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
CALL = ("type", "callId", "parentId", "startTime", "endTime", "title", "class", "method", "point")
PARAMS = ("x", "y", "deltaX", "deltaY", "button", "clickCount")
ENTRY = (
    "pageref",
    "startedDateTime",
    "time",
    "timings",
    "_frameref",
    "_monotonicTime",
    "_resourceType",
)
LOGGED = frozenset({"error", "warning"})
OF_THE_PAGE = frozenset(
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
# Names by which addresses carry what lets somebody in, besides those that fields have.
_KEYS = re.compile(
    r"sess|auth(?![a-z])|(?<![a-z])(?:sid|sig|signature|key|code|ticket)(?![a-z])", re.IGNORECASE
)
_PARAMETER = re.compile(r";([^/;=?#&]*)=[^/;?#&]*")  # of a path, such as ;jsessionid=…
STANDS_OUT = 8  # characters from which on a secret is no common word
LONG = 24  # characters of a query's value that is more likely a key than a word


def clean_trace(raw: Path, at_most: int) -> bytes | None:
    """Return a trace that the driver wrote without its secrets, as a zip; None where that is longer
    than `at_most` bytes, or the page makes it too much work: by its length, by how many secret
    fields it has, or by how deep it is nested.

    Pictures and styles are left out, the largest first, where it would be too long with them.
    """
    try:
        return _clean(raw, at_most)
    except RecursionError:
        return None


def _clean(raw: Path, at_most: int) -> bytes | None:
    with zipfile.ZipFile(raw) as whole:
        sizes = {entry.filename: entry.file_size for entry in whole.infolist()}
        texts = [name for name in sizes if name.endswith((".trace", ".network"))]
        if (length := sum(sizes[name] for name in texts)) > RAW_BYTES:
            return None
        cleaner = _Cleaner()
        kept = {name: cleaner.lines(whole.read(name)) for name in texts}
        # Only now is it known what all the secret fields held.
        if length * len(cleaner.secrets) > SEARCHED:
            return None
        pattern = _pattern_of(cleaner.secrets)
        files = {name: _written(lines, pattern) for name, lines in kept.items()}
        seen = sorted(cleaner.resources & sizes.keys(), key=lambda name: sizes[name])
        return _zipped(files, whole, [n for n in seen if sizes[n] <= RESOURCE_BYTES], at_most)


def _zipped(
    files: Mapping[str, bytes], whole: zipfile.ZipFile, resources: Iterable[str], at_most: int
) -> bytes | None:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in files.items():
            made.writestr(name, text)
        directory = 200 * len(files)
        for name in resources:  # the smallest first
            data, directory = whole.read(name), directory + 200
            if out.tell() + len(data) + directory > at_most:
                break
            made.writestr(name, data)
    return out.getvalue() if out.tell() <= at_most else None


class _Cleaner:
    """Cleans the lines of one trace, and remembers which files and which secrets it met."""

    def __init__(self) -> None:
        self.resources: set[str] = set()
        self._snapshots = SnapshotCleaner(clean_address)

    def lines(self, text: bytes) -> list[Line]:
        """Return the lines that stay."""
        kept = (self._line(json.loads(line)) for line in text.splitlines() if line)
        return [line for line in kept if line is not None]

    @property
    def secrets(self) -> set[str]:
        """What secret fields held, as texts and addresses write it."""
        held = self._snapshots.secrets
        return {form for value in held for form in (value, quote(value), quote_plus(value))}

    def _line(self, line: Line) -> Line | None:
        clean = {
            "context-options": _beginning,
            "before": _call,
            "after": _call,
            "input": _call,
            "console": _logged,
            "event": _event,
            "frame-snapshot": self._snapshot,
            "resource-snapshot": self._exchange,
        }.get(line["type"])
        return None if clean is None else clean(line)

    def _snapshot(self, line: Line) -> Line:
        snapshot = self._snapshots.clean(line["snapshot"])
        files = [told.get("file") for told in snapshot.get("resourceOverrides", [])]
        self.resources.update(name for name in files if isinstance(name, str))
        return {"type": line["type"], "snapshot": snapshot}

    def _exchange(self, line: Line) -> Line:
        told = line["snapshot"]
        asked, answered = told["request"], told["response"]
        content = {key: answered["content"].get(key) for key in ("size", "mimeType")}
        file = answered["content"].get("_file")
        if file and FOR_THE_EYE.match(str(content["mimeType"])):
            content["_file"] = file
            self.resources.add(file)
        kept = _some(told, ENTRY)
        kept["request"] = {
            **_some(asked, ("method", "httpVersion")),
            "url": clean_address(asked["url"]),
            "cookies": [],
            "queryString": [],
            "headers": _headers(asked["headers"]),
            "headersSize": -1,
            "bodySize": asked.get("bodySize", -1),
        }
        kept["response"] = {
            **_some(
                answered, ("status", "statusText", "httpVersion", "_failureText", "_transferSize")
            ),
            "cookies": [],
            "headers": _headers(answered["headers"]),
            "content": content,
            "headersSize": -1,
            "bodySize": answered.get("bodySize", -1),
            "redirectURL": clean_address(answered.get("redirectURL", "")),
        }
        return {"type": line["type"], "snapshot": kept | {"cache": {}}}


def _pattern_of(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """Return what finds these in texts and addresses: short ones only where they stand alone."""
    forms = [
        rf"(?<![A-Za-z0-9]){literal}(?![A-Za-z0-9])" if len(text) < STANDS_OUT else literal
        for text in sorted(secrets, key=len, reverse=True)
        for literal in (re.escape(text),)
    ]
    return re.compile("|".join(forms)) if forms else None


def _written(lines: list[Line], pattern: re.Pattern[str] | None) -> bytes:
    """Return the lines as a file, with what secret fields held masked in them."""
    masked = lines if pattern is None else [_without(line, pattern) for line in lines]
    return b"".join(json.dumps(line).encode() + b"\n" for line in masked)


def _without(line: Any, pattern: re.Pattern[str], key: str = "") -> Any:
    """Return a line with a pattern masked in what it says of the page, and its own words kept."""
    if isinstance(line, str):
        return pattern.sub(MASK, line) if key in OF_THE_PAGE else line
    if isinstance(line, dict):
        # Below "html" every attribute is the page's.
        return {
            name: _without(value, pattern, "html" if key == "html" else name)
            for name, value in line.items()
        }
    if not isinstance(line, list):
        return line
    is_node = key == "html" and len(line) > 1 and isinstance(line[1], dict)
    words = line[:1] if is_node else []
    return [*words, *(_without(value, pattern, key) for value in line[len(words) :])]


def clean_address(url: str) -> str:
    """Return an address without user and password, and with `***` for what looks like a key in its
    query and fragment and for parameters of its path; of an address that is its own content
    (data:), the beginning.
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
        (name, MASK if _is_key(name) or len(value) >= LONG else value) for name, value in pairs
    ]
    return query if clean == pairs else urlencode(clean, safe="*")


def _is_key(name: str) -> bool:
    return looks_secret(name) or _KEYS.search(name) is not None


def _headers(headers: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
    kept = []
    for header in headers:
        name = header["name"].lower()
        if name in HEADERS:
            kept.append(header)
        elif name in ADDRESSES:
            kept.append({"name": header["name"], "value": clean_address(header["value"])})
    return kept


def _some(told: Mapping[str, Any], keys: Iterable[str]) -> Line:
    return {key: told[key] for key in keys if key in told}


def _beginning(line: Line) -> Line:
    options = _some(line.get("options", {}), ("viewport",))
    return _some(line, BEGINNING) | {"options": options}


def _call(line: Line) -> Line:
    kept = _some(line, CALL)
    params = line.get("params", {})
    if line["type"] == "before":
        typed = {"text": MASK} if "text" in params else {}
        kept["params"] = {**_some(params, PARAMS), **typed}
    return kept


def _logged(line: Line) -> Line | None:
    """Return what a script complained of; what it otherwise logs may be anything."""
    if line.get("messageType") not in LOGGED:
        return None
    at = line.get("location", {})
    where = {**_some(at, ("lineNumber", "columnNumber")), "url": clean_address(at.get("url", ""))}
    text = {"text": str(line.get("text", ""))[:2000]}
    return _some(line, ("type", "messageType", "time", "pageId")) | text | {"location": where}


def _event(line: Line) -> Line:
    params = line.get("params", {})
    kept = _some(params, ("pageId",))
    if line.get("method") == "pageError":
        error = params.get("error", {}).get("error", {})
        told = {"name": str(error.get("name", "")), "message": str(error.get("message", ""))[:2000]}
        kept["error"] = {"error": told | {"stack": ""}}
    return _some(line, ("type", "time", "class", "method")) | {"params": kept}
