"""Record a page's console messages and errors, and the scene line that the first error names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import ConsoleMessage, Error, Page

MAX_ENTRIES, MAX_CHARS = 500, 2000
# A line number in the message: "start.txt:12", "at line 12", "第 12 行". Not the position of a JSON
# syntax error: "(line 1 column 8)".
_NAMED = re.compile(
    r"(?:\.txt:|\bline:?\s{1,3})([1-9][0-9]{0,6})\b(?!\s+column\b)"
    r"|第\s{0,3}([1-9][0-9]{0,6})\s{0,3}行",
    re.IGNORECASE,
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_NOT_LOADED = "Failed to load resource"


class PageLog:
    """Records one page's messages during a `with` block.

    Attributes:
        entries: the first 500 messages, each as `[error] text (location)`.
        first_error_line: the 1-based line of the scene that the first such error message names, or
            None. The location of an error in the engine's own script is not a line of the scene.
    """

    def __init__(self, page: Page, mask: Callable[[str], str]) -> None:
        self._page, self._mask = page, mask
        self.entries: list[str] = []
        self.first_error_line: int | None = None
        self._dropped = 0

    def __enter__(self) -> PageLog:
        self._page.on("console", self._on_console)
        self._page.on("pageerror", self._on_error)
        return self

    def __exit__(self, *_: object) -> None:
        self._page.remove_listener("console", self._on_console)
        self._page.remove_listener("pageerror", self._on_error)

    def add(self, kind: str, text: str) -> None:
        """Add a message."""
        if len(self.entries) >= MAX_ENTRIES:
            self._dropped += 1
            return
        cleaned = _CONTROLS.sub(" ", self._mask(text[: 2 * MAX_CHARS]))[:MAX_CHARS]
        self.entries.append(f"[{kind}] {cleaned}")

    def lines(self) -> list[str]:
        """Return the messages, and a note if further ones were dropped."""
        more = [f"[… {self._dropped} more messages left out …]"] if self._dropped else []
        return self.entries + more

    def _on_console(self, message: ConsoleMessage) -> None:
        location: Any = message.location
        line = int(location.get("lineNumber") or 0) + 1
        url = str(location.get("url") or "")
        is_script = bool(url) and not message.text.startswith(_NOT_LOADED)
        where = f" ({url}:{line})" if is_script else f" ({url})" if url else ""
        self.add(message.type, message.text + where)
        if message.type == "error":
            self._find_line(message.text)

    def _on_error(self, error: Error) -> None:
        stack = error.stack or ""
        where = stack.partition("\n    at ")[2].partition("\n")[0]
        self.add("error", f"Uncaught {error.message}" + (f" ({where})" if where else ""))
        self._find_line(error.message)

    def _find_line(self, text: str) -> None:
        if self.first_error_line is None and (found := _NAMED.search(text)):
            self.first_error_line = int(found[1] or found[2])
