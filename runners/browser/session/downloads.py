"""Downloads of a tab's page: kept until an action stores them, or refused and deleted."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners.browser.errors import browser_errors

if TYPE_CHECKING:
    from playwright.async_api import CDPSession
    from playwright.async_api import Download as BrowserDownload

MAX_BYTES = 25 * 1024 * 1024
MAX_KEPT = 5  # that no action has stored yet
CLAIM_SECONDS = 1.0  # between the browser's two events about the start of a download
POLL_SECONDS = 0.02


@dataclass(eq=False, slots=True)
class Download:
    """One download.

    Attributes:
        problem: why there is no file, or None.
        file: the browser's file; to be deleted after it was read.
    """

    guid: str
    url: str
    file_name: str
    received_bytes: int = 0
    is_complete: bool = False
    problem: str | None = None
    file: BrowserDownload | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come."""
        return self.problem is not None or (self.is_complete and self.file is not None)


class Downloads:
    """The downloads of one tab that no action has stored yet, in their order.

    Attributes:
        is_keeping: whether new downloads are kept; else they are refused.
    """

    def __init__(self, cdp: CDPSession, report: Callable[[str], None]) -> None:
        self._report = report
        self.is_keeping = False
        self._downloads: list[Download] = []
        self._tasks: set[asyncio.Task[None]] = set()
        cdp.on("Page.downloadWillBegin", self._on_start)
        cdp.on("Page.downloadProgress", self._on_progress)

    @property
    def running(self) -> list[Download]:
        """The downloads that have not ended."""
        return [download for download in self._downloads if not download.has_ended]

    @property
    def has_ended(self) -> bool:
        """Whether `take_ended` would return any."""
        return len(self.running) < len(self._downloads)

    def take_ended(self) -> list[Download]:
        """Return the downloads that have ended since the last call, failed ones too."""
        ended = [download for download in self._downloads if download.has_ended]
        self._downloads = self.running
        return ended

    def on_file(self, file: BrowserDownload) -> None:
        """Receive the browser's file of a download that has begun; delete it if it is not kept."""
        self._run(self._attach(file))

    async def _attach(self, file: BrowserDownload) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLAIM_SECONDS if self.is_keeping else 0):
                while (download := self._without_file(file.url)) is None:
                    await asyncio.sleep(POLL_SECONDS)
                download.file = file
                if download.problem is None:
                    return
        await discard(file)

    def _without_file(self, url: str) -> Download | None:
        found = (one for one in self._downloads if one.file is None and one.url == url)
        return next(found, None)

    def _on_start(self, params: Mapping[str, Any]) -> None:
        if not self.is_keeping:
            return
        name = Path(str(params.get("suggestedFilename", ""))).name[:200] or "download"
        if len(self._downloads) >= MAX_KEPT:
            self._report(f"{name} was not downloaded: {MAX_KEPT} other downloads come first.")
            return
        self._downloads.append(Download(str(params["guid"]), str(params["url"]), name))

    def _on_progress(self, params: Mapping[str, Any]) -> None:
        for download in self._downloads:
            if download.guid == params.get("guid") and download.problem is None:
                self._update(download, params)

    def _update(self, download: Download, params: Mapping[str, Any]) -> None:
        size = int(max(params.get("receivedBytes", 0), params.get("totalBytes", 0)))
        download.received_bytes = int(params.get("receivedBytes", 0))
        download.is_complete = params.get("state") == "completed"
        if size > MAX_BYTES:
            download.problem = f"It has at least {size} bytes; the limit is {MAX_BYTES}."
        elif params.get("state") == "canceled":
            download.problem = "The connection broke, or the page canceled it."
        if download.problem is not None and download.file is not None:
            self._run(discard(download.file))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def discard(file: BrowserDownload) -> None:
    """End a download and delete what has arrived."""
    with contextlib.suppress(*browser_errors()):
        await file.cancel()
        await file.delete()
