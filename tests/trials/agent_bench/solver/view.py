"""What the scripted model has before it at a turn, and how it looks for things on a page."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.agent.model_turns import Call
from tests.trials.agent_bench.solver.observation import (
    EMPTY,
    PageElement,
    PageView,
    last_results,
    newest_view,
)

Turns = Generator[list[Call], None, None]  # each item is a turn; resumed when its results are there
LOOKS = 12  # how often a page is read again, or scrolled, for one thing


class NotOnPage(Exception):
    """The page has no element or text that an intent needs."""


@dataclass
class ModelView:
    """The newest observation, the last results, and what was found so far.

    Attributes:
        tab: the tab's id from the newest result that names one.
        found: texts that Find and Collect kept.
    """

    page: PageView = EMPTY
    results: Sequence[Mapping[str, Any]] = ()
    tab: int = 0
    found: dict[str, Any] = field(default_factory=dict)

    def read(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Take over the newest observation and results of a request."""
        self.results = last_results(messages)
        self.page = newest_view(messages) or self.page
        for result in self.results:
            for source in (result.get("result"), result.get("newTab")):
                if isinstance(source, Mapping) and isinstance(source.get("tabId"), int):
                    self.tab = source["tabId"]

    @property
    def is_element_gone(self) -> bool:
        """Return whether the last call failed because the page no longer has its element."""
        last = self.results[-1] if self.results else {}
        error = last.get("error") or {}
        return (error.get("code") or error.get("errorCode")) == "ELEMENT_NOT_FOUND"

    def call(self, name: str, **arguments: Any) -> list[Call]:
        """Return a turn with one call on the tab."""
        return [Call(name, {"tabId": self.tab, **arguments})]

    def observe(self, **arguments: Any) -> list[Call]:
        """Return a turn that reads the page again."""
        return self.call("browser_observe", **arguments)

    def look_for(self, label: str, role: str = "", nth: int = 0) -> Generator[Any, None, Any]:
        """Return the element with a label: on what was read, on the rest of a cut page, further
        down, or after a while.

        Raises:
            NotOnPage: It is nowhere.
        """
        for attempt in range(LOOKS):
            element = self.page.find(label, role, nth)
            if element is not None:
                return element
            yield self._read_on(attempt)
        raise NotOnPage(f'{role or "element"} "{label}"')

    def look_for_text(self, pattern: str) -> Generator[Any, None, Any]:
        """Return the match of a pattern in the page's text, read as `look_for` reads.

        Raises:
            NotOnPage: It is nowhere.
        """
        for attempt in range(LOOKS):
            if match := re.search(pattern, self.page.text):
                return match
            yield self._read_on(attempt)
        raise NotOnPage(f"text {pattern}")

    def _read_on(self, attempt: int) -> list[Call]:
        if self.page.next is not None:
            return self.observe(**{"from": self.page.next})
        if attempt < LOOKS // 3:
            return self.observe(full=True)
        return self.call("browser_scroll", screens=1)


__all__ = ["ModelView", "NotOnPage", "PageElement", "Turns"]
