"""What a page did by itself since its last observation: dialogs, downloads, windows, errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playwright.async_api import ConsoleMessage, Dialog, Download, Page

EventKind = Literal["dialogs", "downloads", "windows", "consoleErrors"]
KEPT = 5  # of each kind, the newest
TEXT_LIMIT = 200


class PageEvents:
    """Collects what a page does by itself, a sentence each, until `take`."""

    def __init__(self, page: Page) -> None:
        self._texts: dict[EventKind, list[str]] = {}
        page.on("dialog", self._on_dialog)
        page.on("download", self._on_download)
        page.on("popup", self._on_popup)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.add("consoleErrors", str(error)))

    def add(self, kind: EventKind, text: str) -> None:
        """Add an event; of many of a kind, the newest are kept, the same text once."""
        line = " ".join(text.split())[:TEXT_LIMIT]
        others = [other for other in self._texts.get(kind, ()) if other != line]
        self._texts[kind] = [*others, line][-KEPT:]

    def take(self) -> dict[EventKind, list[str]]:
        """Return the texts since the last call, by kind; kinds without any are left out."""
        taken, self._texts = self._texts, {}
        return taken

    def _on_dialog(self, dialog: Dialog) -> None:
        if dialog.type != "beforeunload":
            self.add("dialogs", f"{dialog.type}: {dialog.message}")

    def _on_download(self, download: Download) -> None:
        self.add("downloads", download.suggested_filename or download.url)

    def _on_popup(self, popup: Page) -> None:
        self.add("windows", popup.url)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            is_request = message.text.startswith("Failed to load resource")
            where = f" {message.location['url']}" if is_request else ""
            self.add("consoleErrors", f"{message.text}{where}")
