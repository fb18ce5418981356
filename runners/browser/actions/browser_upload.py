"""The action `browser_upload`: give files to a field of the task's page."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from runners.actions.catalogue import UPLOAD
from runners.actions.judged import FIELD_LOCATE_MS
from runners.actions.parameters import BrowserUpload
from runners.actions.registration import action
from runners.actions.results import FilesUploaded, UploadedName
from runners.actions.uploaded_files import read_files
from runners.browser.errors import browser_errors
from runners.browser.input.interactor import Interactor
from runners.browser.parameters import ElementReference
from runners.browser.tabs.run_tab import RESERVE_SECONDS
from runners.browser.tabs.task_input import send_input
from runners.browser.tabs.task_tab import TaskTab, task_tab
from runners.errors import InvalidTarget
from runners.tools.base import ToolContext

if TYPE_CHECKING:
    from playwright.async_api import FileChooser, FilePayload, Frame

CHOOSER_SECONDS = 2.0  # until the page asks for files after the click


@action(UPLOAD)
async def browser_upload(args: BrowserUpload, ctx: ToolContext) -> FilesUploaded:
    """Choose files in a file field of the task's page: click the field, its label or the button
    that asks for files, by clickId or XPath, and answer with `files`: artifacts, or files of the
    project, up to 25 MB together. It submits no form. When it fails, details.effect says whether
    anything was done.
    """
    target = ElementReference.of(args)
    async with task_tab(ctx, args.tab_id) as task:
        files: list[FilePayload] = [
            {"name": file.name, "mimeType": file.media_type, "buffer": file.data}
            for file in await read_files(args.files, ctx)
        ]
        choosing: asyncio.Future[FileChooser] = asyncio.get_running_loop().create_future()

        async def choose(interactor: Interactor) -> tuple[None, list[str]]:
            await interactor.click(target)
            await _choose(choosing, files, task, ctx)
            return None, []

        def on_chooser(chooser: FileChooser) -> None:
            if not choosing.done():
                choosing.set_result(chooser)

        task.tab.page.on("filechooser", on_chooser)
        try:
            sent = await send_input(task, ctx, choose, locate_ms=FIELD_LOCATE_MS)
        finally:
            task.tab.page.remove_listener("filechooser", on_chooser)
    names = [UploadedName(fileName=file["name"], bytes=len(file["buffer"])) for file in files]
    return FilesUploaded(files=names, downloads=sent.downloads, warnings=sent.warnings)


async def _choose(
    choosing: asyncio.Future[FileChooser],
    files: Sequence[FilePayload],
    task: TaskTab,
    ctx: ToolContext,
) -> None:
    """Answer the page's request for files.

    Raises:
        InvalidTarget: It requested none, or only one; a frame of another origin did; or it is gone.
            details.effect says so.
    """
    try:
        chooser = await asyncio.wait_for(choosing, CHOOSER_SECONDS)
    except TimeoutError:
        raise InvalidTarget(
            "The element was clicked, but the page asked for no file.",
            details={"effect": "unknown"},
        ) from None
    frame = await chooser.element.owner_frame()
    if frame is None or not _is_of_page(frame):
        raise InvalidTarget(
            "A frame of another origin asked for the files; it gets none.",
            details={"reason": "other_origin", "effect": "unknown"},
        )
    if len(files) > 1 and not chooser.is_multiple():
        # The click may have run a script of the page.
        raise InvalidTarget("The field accepts one file only.", details={"effect": "unknown"})
    seconds = max(0.1, ctx.seconds_left() - 2 * RESERVE_SECONDS)
    try:
        await task.tab.perform(chooser.set_files(list(files)), seconds=seconds)
    except browser_errors():
        raise InvalidTarget(
            "The field did not take the files in time.", details={"effect": "unknown"}
        ) from None


def _is_of_page(frame: Frame) -> bool:
    """Return whether a frame and those around it are of the origin of their page."""
    parent = frame.parent_frame
    if parent is None:
        return True
    own, outer = urlsplit(frame.url), urlsplit(frame.page.url)
    has_same_origin = own.scheme == "about" or (own.scheme, own.netloc) == (
        outer.scheme,
        outer.netloc,
    )
    return has_same_origin and _is_of_page(parent)
