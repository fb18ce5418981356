"""Mark page content for a model: it stands between two lines that it cannot imitate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

TAG = "untrusted-page"
_MARK = re.compile(rf"<(\s*/?\s*{TAG})", re.IGNORECASE)
# The fields of results that hold page content, by action; `preview` is that of a shortened result.
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "browser_observe": ("text", "preview"),
    "browser_readability_extract": ("markdown", "text", "preview"),
}


def fence_page(text: str, url: str) -> str:
    """Return the text of a page between fence lines; the same marks in it are made harmless."""
    address = re.sub(r"[\s\"<>]", "", url)
    harmless = _MARK.sub(r"&lt;\1", text)
    return f'<{TAG} url="{address}">\n{harmless}\n</{TAG}>'


def fence_result(action: str, result: Any) -> Any:
    """Return the result of an action with its page content between fence lines."""
    if action not in _FIELDS or not isinstance(result, Mapping):
        return result
    url = str(result.get("url", ""))
    fenced = {
        name: fence_page(result[name], url)
        for name in _FIELDS[action]
        if isinstance(result.get(name), str)
    }
    return {**result, **fenced}
