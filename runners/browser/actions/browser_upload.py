"""The action `browser_upload`: give files to a field of the task's page."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from runners.actions.catalogue import UPLOAD
from runners.actions.parameters import BrowserUpload
from runners.actions.registration import action
from runners.actions.results import FilesUploaded, UploadedName
from runners.actions.uploaded_files import read_files
from runners.browser.errors import browser_errors
from runners.browser.parameters import ElementReference
from runners.browser.tabs.input_strategy import with_input_strategy
from runners.browser.tabs.run_tab import RESERVE_SECONDS
from runners.browser.tabs.stored_downloads import store_downloads
from runners.browser.tabs.task_tab import TaskTab, page_notices, task_tab
from runners.errors import InvalidTarget
from runners.tools.base import ToolContext

if TYPE_CHECKING:
    from playwright.async_api import FileChooser, FilePayload, Frame

LOCATE_MS = 4000
CHOOSER_SECONDS = 2.0  # until the page asks for files after the click


@action(UPLOAD, kind="browser")
async def browser_upload(args: BrowserUpload, ctx: ToolContext) -> Mapping[str, Any]:
    """Choose files in a file field of the task's page: click the field, its label or the button
    that asks for files, by clickId or XPath, and answer with `files`: artifacts, or files of the
    project, up to 25 MB together. It submits no form. When it fails, details.effect says whether
    anything was done.
    """
    target = ElementReference.model_validate({"clickId": args.click_id, "xpath": args.xpath})
    async with task_tab(ctx, args.tab_id) as task:
        files: list[FilePayload] = [
            {"name": file.name, "mimeType": file.media_type, "buffer": file.data}
            for file in await read_files(args.files, ctx)
        ]
        choosing: asyncio.Future[FileChooser] = asyncio.get_running_loop().create_future()

        def on_chooser(chooser: FileChooser) -> None:
            if not choosing.done():
                choosing.set_result(chooser)

        task.tab.page.on("filechooser", on_chooser)
        try:
            _, _, warnings = await with_input_strategy(
                task,
                ctx,
                lambda interactor: interactor.click(target),
                by_cdp=True,
                locate_ms=LOCATE_MS,
            )
            await _choose(choosing, files, task, ctx)
        finally:
            task.tab.page.remove_listener("filechooser", on_chooser)
        downloads, download_warnings = await store_downloads(task, ctx)
        warnings += download_warnings + page_notices(task, ctx)
    names = [UploadedName(fileName=file["name"], bytes=len(file["buffer"])) for file in files]
    return FilesUploaded(files=names, downloads=downloads, warnings=warnings).as_output()


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
