"""A sandbox behaves the same on kernels with and without openat2, and for every user."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runners.workspace.files import safe_open
from runners.workspace.files.safe_open import has_openat2

REPOSITORY = Path(__file__).parents[4]
NOBODY = 65534
OPERATIONS = [
    "r a/b.txt",
    "r link/passwd",
    "r a/link.txt",
    "r a",
    "r .git/x",
    "r gone.txt",
    "w a/b.txt",
    "w a/new/deep.txt",
    "w link/x.txt",
    "w a/link.txt",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a file, links that lead out of it, and a forbidden file."""
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "a/b.txt").write_text("inside")
    (root / ".git").mkdir()
    (root / ".git/x").write_text("forbidden")
    (root / "link").symlink_to("/etc")
    (root / "a/link.txt").symlink_to(tmp_path / "outside.txt")
    (tmp_path / "outside.txt").write_text("outside")
    return root


def run_sandbox(root: Path, *operations: str, uid: int = 0, code: int = 0) -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "tests.support.workspace.sandbox_process",
        str(root),
        str(uid),
        str(code),
    ]
    completed = subprocess.run(
        command,
        cwd=REPOSITORY,
        input="\n".join(operations),
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    output: dict[str, Any] = json.loads(completed.stdout)
    return output


@pytest.mark.parametrize("code", [0, errno.ENOSYS, errno.EPERM])
def test_reads_and_writes_are_the_same_on_every_kernel(root: Path, code: int) -> None:
    output = run_sandbox(root, *OPERATIONS, code=code)
    assert output["openat2"] is (has_openat2() if code == 0 else False)
    assert output["results"] == {
        "r a/b.txt": "inside",
        "r link/passwd": "E_DENY_PATH",
        "r a/link.txt": "E_DENY_PATH",
        "r a": "E_BAD_ARGS",
        "r .git/x": "E_DENY_PATH",
        "r gone.txt": "E_NOT_FOUND",
        "w a/b.txt": "written",
        "w a/new/deep.txt": "written",
        "w link/x.txt": "E_DENY_PATH",
        "w a/link.txt": "E_DENY_PATH",
        "walk": "a a/b.txt a/new a/new/deep.txt",
    }
    assert (root.parent / "outside.txt").read_text() == "outside"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("code", [0, errno.ENOSYS])
def test_another_user_is_limited_by_the_file_permissions(root: Path, code: int) -> None:
    for folder in (root, *root.parents):
        if folder.stat().st_uid == 0 and not folder.stat().st_mode & 1:
            folder.chmod(0o755)  # pytest makes its folders private to their owner
    os.chown(root / "a", NOBODY, NOBODY)
    (root / "secret.txt").write_text("secret")
    (root / "secret.txt").chmod(0o600)
    (root / "shut").mkdir(mode=0o700)
    (root / "a/mine.txt").write_text("mine")
    os.chown(root / "a/mine.txt", NOBODY, NOBODY)
    operations = [
        "r secret.txt",
        "r shut/x.txt",
        "w new.txt",
        "w a/b.txt",
        "w a/mine.txt",
        "w a/new.txt",
    ]
    assert run_sandbox(root, *operations, uid=NOBODY, code=code)["results"] == {
        "r secret.txt": "E_IO",
        "r shut/x.txt": "E_IO",
        "w new.txt": "E_IO",
        "w a/b.txt": "E_IO",
        "w a/mine.txt": "written",
        "w a/new.txt": "written",
        "walk": "a a/b.txt a/mine.txt a/new.txt secret.txt shut",
    }


def test_an_unreadable_file_is_an_io_error_for_a_user_without_privileges(root: Path) -> None:
    (root / "a/b.txt").chmod(0)
    result = run_sandbox(root, "r a/b.txt")["results"]["r a/b.txt"]
    assert result == ("inside" if os.getuid() == 0 else "E_IO")


def test_openat2_is_not_called_outside_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    monkeypatch.setattr(safe_open, "_openat2", lambda *how: calls.append(how))
    monkeypatch.setattr(sys, "platform", "darwin")
    has_openat2.cache_clear()
    try:
        assert (has_openat2(), calls) == (False, [])
    finally:
        has_openat2.cache_clear()


def test_without_o_path_no_pipe_blocks(root: Path) -> None:
    os.mkfifo(root / "pipe")
    script = (
        "import os, pathlib; del os.O_PATH; from runners.workspace.files.sandbox import Sandbox;"
        "Sandbox(pathlib.Path('.'), ()).stat('pipe')"
    )
    command = [sys.executable, "-c", script]
    paths = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    completed = subprocess.run(
        command, cwd=root, env=paths, capture_output=True, text=True, check=False, timeout=60
    )
    assert "PathDenied: pipe is not a regular file" in completed.stderr
