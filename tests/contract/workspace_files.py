"""Create the project for rows of bad inputs: links, pipes, odd encodings, broken snapshots."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runners.targets.workspaces import state_folder
from tests.support.browser.page_server import PageResponse, PageServer, serve_pages

BROKEN = "snap_20251101T093210_badc0de0"


@pytest.fixture
def project_files(project: Path, tmp_path: Path) -> Path:
    """Return the project's folder with all files that rows refer to."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    texts = {
        "ok.txt": "fine\n",
        "ok_100b.txt": "x" * 100,
        "a.txt": "aab\n",
        ".env": "KEY=1",
        ".git/config": "[core]",
        "sub/.git/config": "[core]",
        "game/scene/a.txt": "a:b;\n",
        "hardlink.txt": "x",
    }
    for name, text in texts.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    (project / "big_6mb.txt").touch()
    os.truncate(project / "big_6mb.txt", 6 * 1024 * 1024)
    (project / "utf16.txt").write_bytes("text".encode("utf-16"))
    (project / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff")
    (project / "link_to_etc").symlink_to("/etc")
    (project / "link_dangling_out").symlink_to(outside / "absent")
    os.link(outside / "secret.txt", project / "hardlink_to_outside.txt")
    os.mkfifo(project / "game" / "dev_zero")  # a pipe: reading it blocks forever
    (project / "no_read_perm.txt").write_text("x")
    (project / "no_read_perm.txt").chmod(0)
    _break_a_snapshot(project)
    return project


def _break_a_snapshot(root: Path) -> None:
    folder = state_folder(root) / "snapshots"
    folder.mkdir(exist_ok=True)
    (folder / f"{BROKEN}.txt").write_text("x")
    (folder / f"{BROKEN}.meta.json").write_text("{")


def package(root: Path, **scripts: str) -> None:
    """Write the project's package.json."""
    content = {"name": "game", "version": "1.0.0", "scripts": scripts}
    (root / "package.json").write_text(json.dumps(content))


def prepare(row_input: dict[str, Any], root: Path, settings: Any) -> dict[str, Any]:
    """Set up what a row's directives request, and return the remaining arguments."""
    package(root, lint=f'{sys.executable} -c "import sys; print(sys.argv[1:])"')
    settings.WORKSPACE_POLICY = replace(settings.WORKSPACE_POLICY, developer=False)
    return {name: value for name, value in row_input.items() if name not in DIRECTIVES}


DIRECTIVES = frozenset({"$after_use_with_other_content", "$disk_full"})


PLAYER = "<title>game</title><p>once upon a time</p>"


@pytest.fixture
def preview(settings: Any) -> Iterator[PageServer]:
    """Serve a local site that answers as WebGAL Terre does, at the project's preview address."""
    with serve_pages() as server:
        server.add("/api/test", PageResponse(b"API Test OK", mime="text/html; charset=utf-8"))
        server.add("/preview", PLAYER)
        headers = {"Location": "https://example.com/"}
        server.add("/redirect_out", PageResponse(status=302, headers=headers))
        policy = replace(settings.WORKSPACE_POLICY, preview_url=server.url(""))
        settings.WORKSPACE_POLICY = policy
        yield server
