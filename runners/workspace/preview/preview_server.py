"""Which page of a preview server shows the project's scenes.

WebGAL Terre answers `/api/test` and serves each game at `/games/<its folder>/`; a dev server
answers with its page, whatever is asked.
"""

from __future__ import annotations

import asyncio
import time
from urllib.parse import quote

from runners.workspace.errors import PreviewFailed, WorkspaceFailed
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.place import Workspace
from runners.workspace.preview.local_http import ask

TEST = "/api/test"
PREVIEW = "/preview"
CONFIG = "game/config.txt"
MAX_CONFIG_BYTES = 256 * 1024


async def preview_page(base: str, workspace: Workspace, *, seconds: float) -> str:
    """Return the address of the page for scenes at a server whose address is `base`.

    Raises:
        NobodyThere: Nothing listens there.
        PreviewFailed: It is no web server, is broken, or has no such page.
        TooSlow: It did not answer in time.
    """
    end_at = time.monotonic() + seconds

    def left() -> float:
        return max(0.1, end_at - time.monotonic())

    test = await ask(base + TEST, seconds=left(), max_bytes=1024)
    statuses = {TEST: test.status}
    if test.status < 500:
        game = f"/games/{quote(workspace.root.name)}/"
        is_terre = test.status < 300 and not test.body.lstrip().startswith(b"<")
        if is_terre and await _serves_us(base + game, workspace, left()):
            return base + game
        for path in (PREVIEW, "/") if is_terre else ("/",):
            statuses[path] = (await ask(base + path, seconds=left())).status
            if statuses[path] < 400:
                return base + path
    raise PreviewFailed(
        "The preview server answers, and has no page to show scenes on.",
        details={"previewUrl": base, "statuses": statuses},
    )


async def _serves_us(game: str, workspace: Workspace, seconds: float) -> bool:
    """Tell whether a game of the server is this project: both have the same configuration."""
    ours = await asyncio.to_thread(_config, workspace)
    if not ours:
        return False
    theirs = await ask(game + CONFIG, seconds=seconds, max_bytes=MAX_CONFIG_BYTES)
    return theirs.status == 200 and theirs.body == ours


def _config(workspace: Workspace) -> bytes:
    with Sandbox(workspace.root, workspace.policy.forbidden) as sandbox:
        try:
            return sandbox.read(CONFIG, limit=MAX_CONFIG_BYTES)
        except WorkspaceFailed:
            return b""
