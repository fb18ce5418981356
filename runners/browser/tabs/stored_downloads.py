"""Store the downloads that an action started as artifacts, and return the start of their text."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from runners.actions.results import DownloadedFile
from runners.browser.errors import browser_errors
from runners.browser.files.file_text import has_text, media_type_of, text_of
from runners.browser.reading.page_reader import GRACE_SECONDS
from runners.browser.session.downloads import Download, discard
from runners.browser.tabs.artifacts import store_artifact
from runners.browser.tabs.run_tab import RESERVE_SECONDS
from runners.browser.tabs.task_tab import TaskTab, check_page_address
from runners.errors import ToolFailed
from runners.tools.base import ToolContext

START_SECONDS = 1.0  # for the server's answer, which decides between a page and a download
EVENT_SECONDS = 0.3  # between the end of a navigation without a page and the download's start
POLL_SECONDS = 0.02
TEXT_CHARACTERS = 4000  # in a result; the artifact has the whole text


async def store_downloads(
    task: TaskTab, ctx: ToolContext, *, until: float | None = None
) -> tuple[list[DownloadedFile] | None, list[str]]:
    """Wait for the downloads that the page has started, store them, and return them with warnings.

    Those that do not finish in the action's time, or by `until` (a `time.monotonic()` value), are
    left to a later action.
    """
    tab, downloads, started = task.tab, task.tab.downloads, time.monotonic()
    until = min(until or ctx.deadline, ctx.deadline - 2 * RESERVE_SECONDS)

    def may_start() -> bool:
        ends = [task.last_input_at + GRACE_SECONDS, tab.stayed_at + EVENT_SECONDS]
        return time.monotonic() < max(ends + [started + START_SECONDS] * tab.is_leaving)

    while time.monotonic() < until and (
        downloads.running or (may_start() and not downloads.has_ended)
    ):
        await asyncio.sleep(POLL_SECONDS)
    files: list[DownloadedFile] = []
    warnings: list[str] = []
    for download in downloads.take_ended():
        try:
            files.append(await _store(download, ctx, warnings))
        except ToolFailed as failed:
            name = ctx.mask(download.file_name)
            warnings.append(f"The download {name} was not stored: {failed.message}")
    return files or None, warnings + [_unfinished(download) for download in downloads.running]


def _unfinished(download: Download) -> str:
    return (
        f"The download {download.file_name} is not finished ({download.received_bytes} bytes so"
        " far): call browser_wait_for_loaded to wait for it."
    )


async def _store(download: Download, ctx: ToolContext, warnings: list[str]) -> DownloadedFile:
    """Store an ended download as an artifact; its file is deleted.

    Raises:
        ToolFailed: It failed, or the caller may not have it.
    """
    data = await _read(download, ctx)
    name, media_type = download.file_name, media_type_of(download.file_name, data)
    artifact_id = await store_artifact(ctx, data, name=name, mime_type=media_type, kind="download")
    stored = DownloadedFile(
        artifactId=artifact_id, fileName=ctx.mask(name), bytes=len(data), mediaType=media_type
    )
    if not has_text(media_type):
        return stored
    seconds = max(0.1, ctx.seconds_left() - RESERVE_SECONDS)
    text = await asyncio.to_thread(text_of, data, media_type, seconds=seconds)
    if text is None:
        warnings.append(f"No text could be read from the download {ctx.mask(name)}.")
        return stored
    stored.text = ctx.mask(text)[:TEXT_CHARACTERS]
    stored.truncated = True if len(text) > TEXT_CHARACTERS else None
    if stored.truncated and text.encode() != data:
        stored.text_artifact_id = await store_artifact(
            ctx, text.encode(), name=f"{name}.txt", mime_type="text/plain", kind="file"
        )
    return stored


async def _read(download: Download, ctx: ToolContext) -> bytes:
    file = download.file
    try:
        # A page of this product, or of an address that the caller may not read, made it.
        check_page_address(download.url.removeprefix("blob:"), ctx)
        if download.problem is not None or file is None:
            raise ToolFailed(download.problem or "The browser lost it.")
        return await asyncio.to_thread(Path(await file.path()).read_bytes)
    except browser_errors():
        raise ToolFailed("The browser lost it.") from None
    finally:
        if file is not None:
            await discard(file)
