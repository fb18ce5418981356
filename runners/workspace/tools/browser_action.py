"""The tool `browser_action`: open, click on and screenshot a page of this machine (S4 §4.2)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Literal

from pydantic import StrictStr, ValidationError

from runners.browser.errors import ContextLost
from runners.browser.parameters import LOCATE_MS, Locator
from runners.browser.reading.page_reader import wait_for_next_document
from runners.browser.reading.screenshot import take_screenshot
from runners.browser.session.tab import ImageFormat, Tab
from runners.browser.tabs.run_tab import interactor_for
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runners.workspace.cancellation import run_to_completion
from runners.workspace.contract_schema import contract_schema
from runners.workspace.errors import BadArguments, PreviewFailed, WorkspaceTimeout, WriteConflict
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.hints import localized_hint
from runners.workspace.preview.local_page import (
    LOCAL_URL,
    browser_seconds,
    check_local_url,
    local_tab,
    open_address,
    require_local_page,
)
from runners.workspace.preview.screenshot_mark import add_mark, has_mark
from runners.workspace.tools.execute_command import require_developer_mode
from runners.workspace.workspace import ProjectWorkspace

IMAGE_FORMATS: Mapping[str, ImageFormat] = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg"}
MAX_IMAGE_BYTES = 64 * 1024 * 1024

REQUEST = contract_schema(
    "browser_action.request",
    {
        "action": {"type": "string", "enum": ["open", "click", "screenshot"]},
        "url": {"type": "string", "description": "Needed for action=open", "pattern": LOCAL_URL},
        "selector": {"type": "string", "description": "Needed for action=click"},
        "path": {"type": "string", "description": "Needed for action=screenshot"},
    },
    ["action"],
    allOf=[
        {
            "if": {"properties": {"action": {"const": action}}},
            "then": {"required": ["action", required]},
        }
        for action, required in (("open", "url"), ("click", "selector"), ("screenshot", "path"))
    ],
)
RESPONSE = contract_schema(
    "browser_action.response",
    {"ok": {"type": "boolean", "const": True}},
    ["ok"],
)


class BrowserAction(Closed):
    """The action, and the argument that it needs."""

    action: Literal["open", "click", "screenshot"]
    url: StrictStr | None = None
    selector: StrictStr | None = None
    path: StrictStr | None = None


@tool(
    "browser_action",
    kind="workspace",
    effect=Effect.ONCE,
    timeout_ms=180_000,
    request=REQUEST,
    response=RESPONSE,
    uses_browser=True,
    developer=True,
)
async def browser_action(args: BrowserAction, ctx: ToolContext) -> Mapping[str, Any]:
    """Open a page on localhost or 127.0.0.1 (`url`), click an element on it (CSS `selector`), or
    save a screenshot as a .png or .jpg file of the workspace (`path`) and as an artifact.

    The page stays open for the next call of the same run or session. Requests of the page to other
    machines are blocked. A screenshot replaces only an earlier screenshot, no other file. Developer
    mode only.
    """
    workspace = require_developer_mode(ctx)
    required = {"open": "url", "click": "selector", "screenshot": "path"}[args.action]
    value = getattr(args, required)
    if value is None:
        raise BadArguments(f"action={args.action} needs {required}.")
    if args.action == "open":
        await _open(value, workspace, ctx)
    elif args.action == "click":
        await _click(value, workspace, ctx)
    else:
        await _screenshot(value, workspace, ctx)
    return {"ok": True}


async def _open(url: str, workspace: ProjectWorkspace, ctx: ToolContext) -> None:
    checked = check_local_url(url, workspace)
    async with local_tab(ctx, workspace) as tab:
        await open_address(tab, checked, seconds=browser_seconds(workspace, ctx))
        require_local_page(tab, workspace)


async def _click(selector: str, workspace: ProjectWorkspace, ctx: ToolContext) -> None:
    try:
        locator = Locator(mode="selector", selector=selector)
    except ValidationError:
        raise BadArguments("selector must have 1 to 2000 characters.") from None
    async with local_tab(ctx, workspace) as tab:
        require_local_page(tab, workspace)
        seconds = browser_seconds(workspace, ctx)
        end = time.monotonic() + seconds
        locate_ms = min(LOCATE_MS, round(seconds * 1000))
        await interactor_for(tab, ctx, timeout_ms=locate_ms).click(locator)
        await wait_for_next_document(tab, end)
        await tab.blocked_warnings()  # raises if the click led to a blocked address
        require_local_page(tab, workspace)


async def _screenshot(path: str, workspace: ProjectWorkspace, ctx: ToolContext) -> None:
    image_format = await asyncio.to_thread(_format_for, path, workspace)
    async with local_tab(ctx, workspace) as tab:
        require_local_page(tab, workspace)
        data = add_mark(await _capture(tab, image_format, browser_seconds(workspace, ctx)))
    await run_to_completion(asyncio.to_thread(_write, path, data, workspace))
    name = PurePosixPath(path).name
    await ctx.save_artifact(data, name=name, mime_type=f"image/{image_format}", kind="screenshot")


async def _capture(tab: Tab, image_format: ImageFormat, seconds: float) -> bytes:
    try:
        return await take_screenshot(tab, seconds=seconds, image_format=image_format)
    except ContextLost:
        raise PreviewFailed("The page navigated during the screenshot; try again.") from None
    except TimeoutError:
        raise WorkspaceTimeout(
            f"The page did not paint within {round(seconds * 1000)} ms."
        ) from None


def _format_for(path: str, workspace: ProjectWorkspace) -> ImageFormat:
    """Return the image format for a path; reject a path where no screenshot may be saved."""
    with Sandbox(workspace.root, workspace.policy.forbidden) as sandbox:
        exists = sandbox.exists(path)
        image_format = IMAGE_FORMATS.get(PurePosixPath(path).suffix.lower())
        if image_format is None:
            raise BadArguments(
                f"path must end in one of {', '.join(IMAGE_FORMATS)}.", details={"path": path[:500]}
            )
        if exists:
            _read_own_screenshot(sandbox, path, workspace)
    return image_format


def _write(path: str, data: bytes, workspace: ProjectWorkspace) -> None:
    with Sandbox(workspace.root, workspace.policy.forbidden) as sandbox:
        before = _read_own_screenshot(sandbox, path, workspace) if sandbox.exists(path) else None
        sandbox.replace(path, data, expect=before)


def _read_own_screenshot(sandbox: Sandbox, path: str, workspace: ProjectWorkspace) -> bytes:
    """Return the earlier screenshot that a new one replaces.

    Raises:
        WriteConflict: The file is not a screenshot of this tool.
    """
    before = sandbox.read(path, limit=MAX_IMAGE_BYTES)
    if not has_mark(before):
        raise WriteConflict(
            "The file exists and is not a screenshot of this tool.",
            hint=localized_hint(workspace, zh="请换一个文件名。", en="Choose another name."),
            details={"path": path[:500]},
        )
    return before
