"""Parse what a model receives: the results of its calls and the newest observation of a page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

FENCE = re.compile(r"<untrusted-page\b([^>]*)>\n?(.*?)</untrusted-page>", re.DOTALL)
ELEMENT = re.compile(r'^\s*\[(\d+)\](\*?) ([a-z-]+(?: [a-z-]+)*)(?: "((?:[^"\\]|\\.)*)")?(.*)$')


@dataclass(frozen=True)
class PageElement:
    """One line of an observation that begins with a number."""

    number: int
    role: str
    label: str
    state: str

    @property
    def is_checked(self) -> bool:
        """Return whether the element is a ticked box or a chosen radio button."""
        return re.search(r"(?<!\bnot )\b(checked|pressed|selected)\b", self.state) is not None


@dataclass(frozen=True)
class PageView:
    """The text of an observation and its elements."""

    text: str
    elements: Sequence[PageElement]
    next: int | None

    def find(self, label: str, role: str = "", nth: int = 0) -> PageElement | None:
        """Return the element with this label, else the nth whose label contains it; None if there
        is none. `role` is a regular expression.
        """
        fitting = [e for e in self.elements if re.search(role, e.role)]
        exact = [e for e in fitting if e.label.casefold() == label.casefold()]
        close = exact or [e for e in fitting if label.casefold() in e.label.casefold()]
        return close[nth] if nth < len(close) else None


EMPTY = PageView("", (), None)


def read_observation(text: str, cut_next: int | None = None) -> PageView:
    """Return the view of an observation's text."""
    elements = [
        PageElement(int(match[1]), match[3], (match[4] or "").replace('\\"', '"'), match[5].strip())
        for line in text.splitlines()
        if (match := ELEMENT.match(line))
    ]
    return PageView(text, elements, cut_next)


def newest_view(messages: Sequence[Mapping[str, Any]]) -> PageView | None:
    """Return the newest observation that the messages hold, or None."""
    for message in reversed(messages):
        found = list(_views(message.get("content")))
        if found:
            return found[-1]
    return None


def _views(value: Any) -> Iterator[PageView]:
    """Yield the observations of a message: results of browser_observe, and fenced texts."""
    if isinstance(value, Mapping):
        if isinstance(value.get("text"), str) and "viewport" in value:
            yield read_observation(_unfenced(value["text"]), (value.get("cut") or {}).get("next"))
            return
        for inner in value.values():
            yield from _views(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _views(inner)
    elif isinstance(value, str):
        yield from _views_in_text(value)


def _views_in_text(value: str) -> Iterator[PageView]:
    inner = None
    if value[:1] in "{[":
        with suppress(ValueError):
            inner = json.loads(value)
    if inner is not None:
        yield from _views(inner)
    else:
        for match in FENCE.finditer(value):
            cut = re.search(r"\bfrom: (\d+)|\"next\": ?(\d+)", value[match.end() :])
            yield read_observation(match[2], int(cut[1] or cut[2]) if cut else None)


def _unfenced(text: str) -> str:
    match = FENCE.search(text)
    return match[2] if match else text


def last_results(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the results of the last turn's calls."""
    results: list[dict[str, Any]] = []
    for message in reversed(messages):
        if message["role"] == "assistant":
            break
        if message["role"] == "tool":
            results.insert(0, json.loads(message["content"]))
    return results


def page_field(result: Mapping[str, Any], name: str) -> Any:
    """Return a list of a result that a page may have written: it is between fence lines."""
    match = re.search(rf"^{name}: (\[.*)$", str(result.get("untrusted")), re.MULTILINE)
    return json.loads(match[1]) if match else None


def goal_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of the last user message before the first reply."""
    texts = []
    for message in messages:
        if message["role"] == "assistant":
            break
        if message["role"] == "user":
            texts.append(str(message["content"]))
    return "\n".join(texts)
