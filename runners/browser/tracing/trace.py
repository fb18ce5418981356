"""Playwright traces of what a session's pages do, kept where a step fails on one of them.

Recording makes a run's steps an eighth slower or more, lets a script of the driver's work in every
page, and writes what it sees to disk. So it begins when a step has failed, with the page as it then
is, unless the whole story was asked for before (`Tracer.record`). docs/decisions/0009 tells more.
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
    """Where the driver writes what it records. It leaves its files there, cookies and all: the
    lines of a recording are deleted when it ends, and what recordings share with the last of them.
    """

    def __init__(self) -> None:
        self.path: Path | None = None  # of the browser that runs
        self._recording = 0

    def begin(self) -> None:
        """Keep the files from now on."""
        self._recording += 1

    def end(self, name: str) -> None:
        """Delete the files of this name; with the last who records all are deleted."""
        self._recording -= 1
        if self.path is None:
            return
        if self._recording == 0:
            shutil.rmtree(self.path, ignore_errors=True)
            return
        for file in self.path.glob(f"{name}*"):
            file.unlink(missing_ok=True)


class Tracer:
    """Records one session, whose context may be made anew under its hands."""

    def __init__(self, folder: TraceFolder | None) -> None:
        self._folder = folder
        self._context: BrowserContext | None = None
        self._is_on = False
        self._name_of_files = ""
        self._step = ""  # what is under way, where the whole story is wanted

    async def follow(self, context: BrowserContext) -> None:
        """Go on in this context, which is new."""
        self._end()
        self._context = context
        if self._step:
            await self._begin()

    async def record(self, step: str) -> None:
        """Record from now on; what follows belongs to this step, until the next one is named."""
        self._step = step
        if self._is_on:
            await self._name(step)
        else:
            await self._begin()

    async def take(self, page: Page | None, told: str) -> bytes | None:
        """Return the trace so far as a zip, cleaned of secrets, and stop recording.

        It ends with a snapshot of the page under the name `told`. None where the browser is gone or
        does not answer in time, or where it is too large.
        """
        context, folder = self._context, self._folder
        if context is None or folder is None or folder.path is None:
            return None
        try:
            async with asyncio.timeout(TRACE_SECONDS):
                await self._begin()
                raw = folder.path / f"{self._name_of_files}.zip"
                await self._name(told)
                if page is not None:
                    await _snapshot(page)
                await context.tracing.stop(path=raw)
                return await asyncio.to_thread(clean_trace, raw, TRACE_BYTES)
        except browser_errors() as error:
            logger.info("no trace could be kept: %s", type(error).__name__)
            return None
        finally:
            self._end()

    async def drop(self) -> None:
        """Stop recording and forget what was recorded; safe at any time."""
        self._step = ""
        if self._is_on and self._context is not None:
            with contextlib.suppress(*browser_errors()):
                await asyncio.wait_for(self._context.tracing.stop(), SNAPSHOT_SECONDS)
        self._end()

    async def _begin(self) -> None:
        context, folder = self._context, self._folder
        if context is None or folder is None or self._is_on:
            return
        folder.begin()
        self._is_on, self._name_of_files = True, secrets.token_hex(8)
        with contextlib.suppress(*browser_errors()):
            async with asyncio.timeout(SNAPSHOT_SECONDS):
                # No pictures: they cost most, and nothing covers secret fields on them.
                await context.tracing.start(
                    name=self._name_of_files, snapshots=True, screenshots=False
                )
        if self._step:
            await self._name(self._step)

    async def _name(self, step: str) -> None:
        """Let what follows belong to this, and no more to what was named before."""
        if self._context is None:
            return
        with contextlib.suppress(*browser_errors()):
            async with asyncio.timeout(SNAPSHOT_SECONDS):
                await self._context.tracing.group_end()
                await self._context.tracing.group(step)

    def _end(self) -> None:
        if self._is_on and self._folder is not None:
            self._folder.end(self._name_of_files)
        self._is_on = False


async def _snapshot(page: Page) -> None:
    """Have the driver take down the page's document, as it does around whatever it evaluates."""
    with contextlib.suppress(*browser_errors()):
        await asyncio.wait_for(page.evaluate("0"), SNAPSHOT_SECONDS)
