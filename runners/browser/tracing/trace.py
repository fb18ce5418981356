"""Playwright traces of a session's pages, stored when a step fails.

Recording slows a run's steps down by an eighth or more, runs a script of the driver in every page,
and writes to disk. So it starts when a step has failed, with the page as it then is, unless the
caller requested a recording of all steps (`Tracer.record`). See docs/decisions/0009.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from runners.browser.errors import browser_errors
from runners.browser.tracing.sanitize import clean_trace

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

logger = logging.getLogger(__name__)

TRACE_SECONDS = 6.0
SNAPSHOT_SECONDS = 2.0
TRACE_BYTES = 8 * 1024 * 1024


class TraceFolder:
    """The folder in which the driver writes recordings, including cookies, and never deletes them.

    The files of a recording are deleted when it ends, shared files when the last one ends.
    """

    def __init__(self) -> None:
        self.path: Path | None = None  # of the running browser
        self._recording = 0

    def start_recording(self) -> None:
        """Count a recording, so that its files are not deleted."""
        self._recording += 1

    def end_recording(self, name: str) -> None:
        """Delete the files of this recording, or all files if it is the last recording."""
        self._recording -= 1
        if self.path is None:
            return
        if self._recording == 0:
            shutil.rmtree(self.path, ignore_errors=True)
            return
        for file in self.path.glob(f"{name}*"):
            file.unlink(missing_ok=True)


class Tracer:
    """Records one session, whose browser context may be replaced after a crash."""

    def __init__(self, folder: TraceFolder | None) -> None:
        self._folder = folder
        self._context: BrowserContext | None = None
        self._is_recording = False
        self._file_name = ""
        self._step = ""  # the current step, if all steps are recorded

    async def follow(self, context: BrowserContext) -> None:
        """Continue in this new context."""
        self._end()
        self._context = context
        if self._step:
            await self._start()

    async def record(self, step: str) -> None:
        """Record from now on; what follows belongs to this step, until the next call."""
        self._step = step
        if self._is_recording:
            await self._start_group(step)
        else:
            await self._start()

    async def take(self, page: Page | None, snapshot_name: str) -> bytes | None:
        """Stop recording and return the trace as a zip without secrets.

        It ends with a snapshot of the page under `snapshot_name`. Returns None if the browser is
        gone or does not answer in time, or if the trace is too large.
        """
        context, folder = self._context, self._folder
        if context is None or folder is None or folder.path is None:
            return None
        try:
            async with asyncio.timeout(TRACE_SECONDS):
                await self._start()
                raw = folder.path / f"{self._file_name}.zip"
                await self._start_group(snapshot_name)
                if page is not None:
                    await _snapshot(page)
                await context.tracing.stop(path=raw)
                return await asyncio.to_thread(clean_trace, raw, TRACE_BYTES)
        except browser_errors() as error:
            logger.info("no trace could be stored: %s", type(error).__name__)
            return None
        finally:
            self._end()

    async def drop(self) -> None:
        """Stop recording and discard the trace; safe at any time."""
        self._step = ""
        if self._is_recording and self._context is not None:
            with contextlib.suppress(*browser_errors()):
                await asyncio.wait_for(self._context.tracing.stop(), SNAPSHOT_SECONDS)
        self._end()

    async def _start(self) -> None:
        context, folder = self._context, self._folder
        if context is None or folder is None or self._is_recording:
            return
        folder.start_recording()
        self._is_recording, self._file_name = True, secrets.token_hex(8)
        with contextlib.suppress(*browser_errors()):
            async with asyncio.timeout(SNAPSHOT_SECONDS):
                # No screenshots: they are expensive, and secret fields on them are not covered.
                await context.tracing.start(name=self._file_name, snapshots=True, screenshots=False)
        if self._step:
            await self._start_group(self._step)

    async def _start_group(self, step: str) -> None:
        """End the current group of the trace and start one for this step."""
        if self._context is None:
            return
        with contextlib.suppress(*browser_errors()):
            async with asyncio.timeout(SNAPSHOT_SECONDS):
                await self._context.tracing.group_end()
                await self._context.tracing.group(step)

    def _end(self) -> None:
        if self._is_recording and self._folder is not None:
            self._folder.end_recording(self._file_name)
        self._is_recording = False


async def _snapshot(page: Page) -> None:
    """Have the driver record a snapshot of the page; it does so around every evaluation."""
    with contextlib.suppress(*browser_errors()):
        await asyncio.wait_for(page.evaluate("0"), SNAPSHOT_SECONDS)
