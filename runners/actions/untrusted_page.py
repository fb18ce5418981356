"""Mark page content for a model: it stands between two lines that it cannot imitate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

TAG = "untrusted-page"
FENCED = "untrusted"  # the field of a result with what stands between the fence lines
_MARK = re.compile(rf"<(\s*/?\s*{TAG})", re.IGNORECASE)
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
    harmless = _MARK.sub(r"&lt;\1", text)
    return f"<{TAG}{attribute}>\n{harmless}\n</{TAG}>"


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


def _has_text(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_text, value.values()))
    if isinstance(value, list):
        return any(map(_has_text, value))
    return isinstance(value, str) and bool(value)
