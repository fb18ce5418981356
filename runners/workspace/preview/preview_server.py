"""Which page of a preview server shows the project's scenes.

WebGAL Terre answers `/api/test` and serves each game at `/games/<its folder>/`; a dev server
answers with its page, whatever is asked.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass
from urllib.parse import quote

from runners.workspace.errors import PreviewFailed, WorkspaceFailed
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.preview.local_http import LocalResponse, http_get
from runners.workspace.workspace import Workspace

TEST = "/api/test"
PREVIEW = "/preview"
CONFIG = "game/config.txt"
MAX_CONFIG_BYTES = 256 * 1024
MAX_PAGE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class ScenePage:
    """A page that shows scenes.

    Attributes:
        is_any: the server answers any address with it, so it may be another page (Terre's own).
    """

    url: str
    is_catch_all: bool = False


async def find_scene_page(base: str, workspace: Workspace, *, seconds: float) -> ScenePage:
    """Return the page for scenes at a server whose address is `base`.

    Raises:
        NothingListening: Nothing listens there.
        PreviewFailed: It is no web server, is broken, or has no such page.
        WorkspaceTimeout: It did not answer in time.
    """
    deadline = time.monotonic() + seconds

    def left() -> float:
        return max(0.1, deadline - time.monotonic())

    test = await http_get(base + TEST, seconds=left(), max_bytes=1024)
    statuses = {TEST: test.status}
    if test.status < 500:
        game = f"/games/{quote(workspace.root.name)}/"
        is_terre = test.status < 300 and not test.body.lstrip().startswith(b"<")
        if is_terre and await _serves_us(base + game, workspace, left()):
            return ScenePage(base + game)
        for path in (PREVIEW, "/") if is_terre else ("/",):
            statuses[path] = (await http_get(base + path, seconds=left())).status
            if statuses[path] < 400:
                return ScenePage(base + path, is_terre and await _is_any(base, path, left()))
    raise PreviewFailed(
        "The preview server answers, and has no page to show scenes on.",
        details={"previewUrl": base, "statuses": statuses},
    )


async def _is_any(base: str, path: str, seconds: float) -> bool:
    """Tell whether a server shows the same page at an address that nobody can have meant."""

    async def page_at(where: str) -> LocalResponse:
        return await http_get(base + where, seconds=seconds / 2, max_bytes=MAX_PAGE_BYTES)

    try:
        nowhere = await page_at(f"/{secrets.token_hex(8)}")
        return nowhere.status < 300 and nowhere == await page_at(path)
    except WorkspaceFailed:
        return False  # it was only asked on the way: its page is there


async def _serves_us(game: str, workspace: Workspace, seconds: float) -> bool:
    """Tell whether a game of the server is this project: both have the same configuration."""
    ours = await asyncio.to_thread(_config, workspace)
    if not ours:
        return False
    theirs = await http_get(game + CONFIG, seconds=seconds, max_bytes=MAX_CONFIG_BYTES)
    return theirs.status == 200 and theirs.body == ours


def _config(workspace: Workspace) -> bytes:
    with Sandbox(workspace.root, workspace.policy.forbidden) as sandbox:
        try:
            return sandbox.read(CONFIG, limit=MAX_CONFIG_BYTES)
        except WorkspaceFailed:
            return b""
