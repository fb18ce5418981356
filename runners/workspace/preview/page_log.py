"""What a page says while it is looked at: its console, its errors, and where the first one is."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import ConsoleMessage, Error, Page

MAX_ENTRIES, MAX_CHARS = 500, 2000
# "start.txt:12", "at line 12", "第 12 行": a line that the message itself names. Not that of JSON
# which the browser could not parse: "(line 1 column 8)".
_NAMED = re.compile(
    r"(?:\.txt:|\bline:?\s{1,3})([1-9][0-9]{0,6})\b(?!\s+column\b)"
    r"|第\s{0,3}([1-9][0-9]{0,6})\s{0,3}行",
    re.IGNORECASE,
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_NOT_LOADED = "Failed to load resource"


class PageLog:
    """Follows one page for the time of a `with` block.

    Attributes:
        entries: a line each, `[error] what (where)`; the first 500.
        first_error_line: the line of a scene, 1-based, that the first error with one names; None
            where none does. Where in the engine's own script an error was raised says nothing of
            the scene.
    """

    def __init__(self, page: Page, mask: Callable[[str], str]) -> None:
        self._page, self._mask = page, mask
        self.entries: list[str] = []
        self.first_error_line: int | None = None
        self._left_out = 0

    def __enter__(self) -> PageLog:
        self._page.on("console", self._on_console)
        self._page.on("pageerror", self._on_error)
        return self

    def __exit__(self, *_: object) -> None:
        self._page.remove_listener("console", self._on_console)
        self._page.remove_listener("pageerror", self._on_error)

    def add(self, kind: str, text: str) -> None:
        """Add a line of our own."""
        if len(self.entries) >= MAX_ENTRIES:
            self._left_out += 1
            return
        shown = _CONTROLS.sub(" ", self._mask(text[: 2 * MAX_CHARS]))[:MAX_CHARS]
        self.entries.append(f"[{kind}] {shown}")

    def lines(self) -> list[str]:
        """Return the lines, and how many more there were."""
        more = [f"[… {self._left_out} more messages left out …]"] if self._left_out else []
        return self.entries + more

    def _on_console(self, message: ConsoleMessage) -> None:
        at: Any = message.location
        line = int(at.get("lineNumber") or 0) + 1
        url = str(at.get("url") or "")
        is_script = bool(url) and not message.text.startswith(_NOT_LOADED)
        where = f" ({url}:{line})" if is_script else f" ({url})" if url else ""
        self.add(message.type, message.text + where)
        if message.type == "error":
            self._note_line(message.text)

    def _on_error(self, error: Error) -> None:
        stack = error.stack or ""
        where = stack.partition("\n    at ")[2].partition("\n")[0]
        self.add("error", f"Uncaught {error.message}" + (f" ({where})" if where else ""))
        self._note_line(error.message)

    def _note_line(self, text: str) -> None:
        if self.first_error_line is None and (named := _NAMED.search(text)):
            self.first_error_line = int(named[1] or named[2])
