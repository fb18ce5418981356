"""The tool `preview_scene`: open a scene in the project's local preview (S4 §2.3)."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from pydantic import Field, StrictStr

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runners.workspace.call_context import require_workspace
from runners.workspace.contract_schema import contract_schema
from runners.workspace.errors import (
    BadArguments,
    PolicyViolation,
    PreviewFailed,
    WorkspaceFailed,
)
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.hints import READ_HINTS, add_hints, localized_hint
from runners.workspace.preview.dev_server import can_start_dev_server, get_dev_server
from runners.workspace.preview.local_http import NothingListening
from runners.workspace.preview.local_page import (
    ERROR_RESERVE_SECONDS,
    LOCAL_URL,
    browser_seconds,
    check_local_url,
    local_tab,
    open_address,
    require_local_page,
    reread_page,
)
from runners.workspace.preview.page_log import PageLog
from runners.workspace.preview.preview_server import ScenePage, find_scene_page
from runners.workspace.preview.scene_jump import SceneJump
from runners.workspace.workspace import ProjectWorkspace

START = "start"  # the engine's first scene: game/scene/start.txt
SCENES = "game/scene/"

REQUEST = contract_schema(
    "preview_scene.request",
    {
        "scenePath": {
            "type": "string",
            "description": "Optional. If omitted, use current start scene",
        }
    },
)
RESPONSE = contract_schema(
    "preview_scene.response",
    {
        "url": {"type": "string", "pattern": LOCAL_URL},
        "logs": {"type": "array", "items": {"type": "string"}},
        "firstErrorLine": {"type": "integer", "minimum": 1},
    },
    ["url"],
)


class PreviewScene(Closed):
    """The scene to open."""

    scene_path: StrictStr | None = Field(default=None, alias="scenePath")


@tool(
    "preview_scene",
    kind="workspace",
    effect=Effect.AT_LEAST_ONCE,  # it may run the project's own dev script
    timeout_ms=240_000,
    request=REQUEST,
    response=RESPONSE,
    uses_browser=True,
)
async def preview_scene(args: PreviewScene, ctx: ToolContext) -> Mapping[str, Any]:
    """Open a scene (`scenePath`, such as game/scene/start.txt; by default the start scene) in the
    project's preview on this machine; return its url, the page's console messages, and the line of
    the scene that the first error names; logs has a warning if the page did not confirm that it
    shows the scene. If no preview server listens, in developer mode the project's own dev script is
    started. Requests to other machines are blocked.
    """
    workspace = require_workspace(ctx)
    scene = await asyncio.to_thread(_scene_name, args.scene_path, workspace)
    page = await _preview_page(workspace, ctx)
    url = f"{page.url}#scene={quote(scene, safe='/')}"
    if ctx.browser is None:
        return {"url": url}
    async with local_tab(ctx, workspace) as tab:
        with PageLog(tab.page, ctx.mask) as log:
            async with SceneJump(tab, scene) as jump:
                result = await open_address(tab, url, seconds=browser_seconds(workspace, ctx))
                _require_success(result, url, log)
                is_shown = await jump.wait_until_shown(seconds=browser_seconds(workspace, ctx))
                if is_shown:
                    result = await reread_page(tab, seconds=browser_seconds(workspace, ctx))
        require_local_page(tab, workspace)
        uncertainties = () if is_shown else _uncertainties(page, scene, jump)
        for warning in (*result["warnings"], *uncertainties):
            log.add("warning", warning)
    response: dict[str, Any] = {"url": url, "logs": log.lines()}
    if log.first_error_line is not None:
        response["firstErrorLine"] = log.first_error_line
    return response


def _require_success(result: Mapping[str, Any], url: str, log: PageLog) -> None:
    if (result["httpStatus"] or 200) >= 400:
        raise PreviewFailed(
            f"The preview responds with HTTP status {result['httpStatus']}.",
            details={"url": url, "logs": log.lines()},
        )


def _uncertainties(page: ScenePage, scene: str, jump: SceneJump) -> Iterator[str]:
    """Yield why a page that did not confirm the scene may show something else."""
    if page.is_catch_all:
        yield (
            "The server returns this page for any path, so it may be the server's own page and not"
            " the game. Add the project to WebGAL Terre's games to see it there."
        )
    if jump.is_engine_connected:
        yield f"The page did not confirm in time that it shows the scene {scene}."
    elif scene != START:
        yield (
            "The page did not connect as WebGAL's engine does; it may show its first scene instead"
            f" of {scene}."
        )


def _scene_name(path: str | None, workspace: ProjectWorkspace) -> str:
    """Return a scene's name for the engine: its path in the folder of scenes, without extension."""
    if path is None:
        return START
    with (
        add_hints(workspace, READ_HINTS),
        Sandbox(workspace.root, workspace.policy.forbidden) as sandbox,
    ):
        is_file = stat.S_ISREG(sandbox.stat(path).st_mode)
        _, found, name = f"/{sandbox.normalize_path(path)}".rpartition(f"/{SCENES}")
    scene = name.removesuffix(".txt")
    if not (is_file and found and scene != name and scene):
        raise BadArguments(
            f"scenePath is not a scene, which is a .txt file in {SCENES}.",
            details={"scenePath": path[:500]},
            hint=localized_hint(
                workspace,
                zh=f"请用 list_files 查看 {SCENES} 下的场景文件。",
                en=f"Use list_files to see the scenes in {SCENES}.",
            ),
        )
    return scene


async def _preview_page(workspace: ProjectWorkspace, ctx: ToolContext) -> ScenePage:
    """Return the page for scenes, of the preview server or the project's dev server."""
    try:
        base = check_local_url(workspace.policy.preview_url, workspace).rstrip("/")
    except BadArguments:
        raise PolicyViolation("The configured preview address is not a valid URL.") from None
    try:
        return await find_scene_page(base, workspace, seconds=browser_seconds(workspace, ctx))
    except NothingListening as failed:
        if ctx.browser is None or not await can_start_dev_server(workspace):
            raise _nothing_listening(workspace, failed.message) from None
    limit = workspace.policy.command_timeout_ms / 1000
    seconds = min(limit, ctx.seconds_left() - ERROR_RESERVE_SECONDS)
    return ScenePage((await get_dev_server(workspace, ctx.browser, seconds=seconds)).url)


def _nothing_listening(workspace: ProjectWorkspace, message: str) -> WorkspaceFailed:
    return PreviewFailed(
        message,
        hint=localized_hint(
            workspace,
            zh="请先启动 WebGAL Terre 或项目的 dev 服务，再预览。",
            en="Start WebGAL Terre or the project's dev server, then preview again.",
        ),
        details={"previewUrl": workspace.policy.preview_url},
    )
