"""Find the page of a preview server that shows the project's scenes.

WebGAL Terre responds at `/api/test` and serves each game at `/games/<folder>/`; a dev server
returns its page for any path.
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
from runners.workspace.workspace import ProjectWorkspace

TEST = "/api/test"
PREVIEW = "/preview"
CONFIG = "game/config.txt"
MAX_CONFIG_BYTES = 256 * 1024
MAX_PAGE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class ScenePage:
    """A page that shows scenes.

    Attributes:
        is_catch_all: the server returns it for any path, so it may be another page (Terre's own).
    """

    url: str
    is_catch_all: bool = False


async def find_scene_page(base: str, workspace: ProjectWorkspace, *, seconds: float) -> ScenePage:
    """Return the page for scenes of the server at `base`.

    Raises:
        NothingListening: Nothing listens there.
        PreviewFailed: It is not a web server, fails, or has no such page.
        WorkspaceTimeout: It did not respond in time.
    """
    deadline = time.monotonic() + seconds

    def left() -> float:
        return max(0.1, deadline - time.monotonic())

    test = await http_get(base + TEST, seconds=left(), max_bytes=1024)
    statuses = {TEST: test.status}
    if test.status < 500:
        game = f"/games/{quote(workspace.root.name)}/"
        is_terre = test.status < 300 and not test.body.lstrip().startswith(b"<")
        if is_terre and await _serves_project(base + game, workspace, left()):
            return ScenePage(base + game)
        for path in (PREVIEW, "/") if is_terre else ("/",):
            statuses[path] = (await http_get(base + path, seconds=left())).status
            if statuses[path] < 400:
                return ScenePage(base + path, is_terre and await _is_catch_all(base, path, left()))
    raise PreviewFailed(
        "The preview server responds, but has no page that shows scenes.",
        details={"previewUrl": base, "statuses": statuses},
    )


async def _is_catch_all(base: str, path: str, seconds: float) -> bool:
    """Return whether the server returns the same page for a random path."""

    async def page_at(where: str) -> LocalResponse:
        return await http_get(base + where, seconds=seconds / 2, max_bytes=MAX_PAGE_BYTES)

    try:
        unknown = await page_at(f"/{secrets.token_hex(8)}")
        return unknown.status < 300 and unknown == await page_at(path)
    except WorkspaceFailed:
        return False  # this check is optional: the page itself was found


async def _serves_project(game: str, workspace: ProjectWorkspace, seconds: float) -> bool:
    """Return whether a game of the server is this project: both have the same config.txt."""
    own = await asyncio.to_thread(_config, workspace)
    if not own:
        return False
    served = await http_get(game + CONFIG, seconds=seconds, max_bytes=MAX_CONFIG_BYTES)
    return served.status == 200 and served.body == own


def _config(workspace: ProjectWorkspace) -> bytes:
    with Sandbox(workspace.root, workspace.policy.forbidden) as sandbox:
        try:
            return sandbox.read(CONFIG, limit=MAX_CONFIG_BYTES)
        except WorkspaceFailed:
            return b""
