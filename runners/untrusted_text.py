"""Mark content of pages and files for a model: it stands between two marks that it cannot imitate.

The agent's prompt and MCP mark what they hand to a model; REST returns it as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

TAG = "untrusted-page"
FENCED = "untrusted"  # the field of a result with what stands between the fence lines
# Fields of an object whose other fields stand between them, in this order or sorted by name.
BEGIN, END = f"!<{TAG}>", f"~</{TAG}>"
# Characters that a model or a screen may skip: a mark with them inside looks like the exact one.
_UNSEEN = r"[\s\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]*"
_MARK = re.compile(rf"<({_UNSEEN}/?{_UNSEEN}{_UNSEEN.join(TAG)})", re.IGNORECASE)
_QUOTE = re.compile('[“"]')  # the texts of this program have the words of a page in quotes
_WORDS = re.compile(r"\s|[^\x00-\x7f]")
# Fields of an error's details that have words of a page, be it one.
_OF_PAGE = frozenset({"options", "candidates", "coveredBy", "field", "title", "shown", "changing"})
# Fields whose texts are this program's own, or addresses. What another field has in words, a page
# may have written.
_OWN = frozenset(
    {
        "artifactId",
        "error",
        "isLeft",
        "mimeType",
        "missing",
        "note",
        "screen",
        "screenshot",
        "scroll",
        "shown",
        "status",
        "strategy",
        "url",
        "wholeText",
    }
)


def fence_page(text: str, url: str = "") -> str:
    """Return the text of a page between fence lines; the same marks in it are made harmless."""
    address = re.sub(r"[\s\"<>]", "", url)
    attribute = f' url="{address}"' if address else ""
    return f"<{TAG}{attribute}>\n{_harmless(text)}\n</{TAG}>"


def fence_value(value: Any) -> Any:
    """Return a JSON value with its texts between marks: an object keeps its fields, and its first
    and its last field are the marks. A value without words is returned as it is.
    """
    if isinstance(value, str):
        return fence_page(value) if _WORDS.search(value) else value
    if not has_words(value):
        return value
    return fence_object(value if isinstance(value, Mapping) else {"values": value})


def fence_object(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with its fields between the fields BEGIN and END; the same marks in its
    texts are made harmless.
    """
    return {BEGIN: "", **_harmless(value), END: ""}


def fence_quotes(text: str) -> str:
    """Return a text of this program, between fence lines if it quotes a page."""
    return fence_page(text) if _QUOTE.search(text) else text


def fence_error(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error {message, details, …} with what it quotes of a page between marks."""
    fenced = dict(error)
    if isinstance(message := error.get("message"), str):
        fenced["message"] = fence_quotes(message)
    details = error.get("details")
    if isinstance(details, Mapping) and (_OF_PAGE & details.keys() or has_words(details)):
        fenced["details"] = fence_object(details)
    return fenced


def has_words(value: Any) -> bool:
    """Return whether a JSON value has a text that is more than a name, a number or an address."""
    if isinstance(value, Mapping):
        return any(has_words(each) for pair in value.items() for each in pair)
    if isinstance(value, list | tuple):
        return any(map(has_words, value))
    return isinstance(value, str) and _WORDS.search(value) is not None


def fence_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a browser action with all that a page may have written in one text
    between fence lines, in the field `untrusted`.
    """
    own, lines = split_result(result)
    return {**own, FENCED: fence_page("\n".join(lines))} if lines else own


def split_result(result: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the fields of a result that no page writes, and lines `name: value` of the others."""
    own: dict[str, Any] = {}
    lines: list[str] = []
    for name, value in result.items():
        if isinstance(value, Mapping) and name not in _OWN:
            own[name], inner = split_result(value)
            lines += inner
        elif name in _OWN or not _has_text(value):
            own[name] = value
        else:
            shown = value if isinstance(value, str) else orjson.dumps(value).decode()
            lines.append(f"{name}: {shown}")
    return own, lines


def close_fence(text: str) -> str:
    """Return the beginning of a text with the closing line of a fence that was cut off."""
    is_open = text.rfind(f"<{TAG}") > text.rfind(f"</{TAG}>")
    return f"{text}\n</{TAG}>" if is_open else text


def _harmless(value: Any) -> Any:
    """Return a JSON value whose texts have no mark."""
    if isinstance(value, str):
        return _MARK.sub(r"&lt;\1", value)
    if isinstance(value, Mapping):
        return {_harmless(name): _harmless(each) for name, each in value.items()}
    return [_harmless(each) for each in value] if isinstance(value, list | tuple) else value


def _has_text(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_text, value.values()))
    if isinstance(value, list):
        return any(map(_has_text, value))
    return isinstance(value, str) and bool(value)
