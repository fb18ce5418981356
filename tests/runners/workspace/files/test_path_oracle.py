"""30 000 mutated paths: whatever a sandbox reads is the file that the kernel, confined to the
root, opens under that path without following a link; and a file that plainly exists is never
refused."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from runners.workspace.errors import WorkspaceFailed
from runners.workspace.files import safe_open
from runners.workspace.files.sandbox import Sandbox

REPOSITORY = Path(__file__).parents[4]
PATHS = 30_000
FILES = [
    "a.txt",
    "game/start.txt",
    "game/scene/one.txt",
    "game/scene/deep/two.txt",
    "game/雪.txt",
    "config",
    "sub/config",
]
HIDDEN = [".git/config", "sub/.GIT/config", ".env", "game/.env.local", "node_modules/m/x.txt"]
LINKS = {
    "out": "..",
    "out_file": "../secret.txt",
    "etc": "/etc",
    "in": "game",
    "hop": "in/scene",
    "loop": "loop",
    "game/up": "../..",
    "game/scene/self": ".",
    "to_git": ".git",
}
PATH_PARTS = [
    "..",
    ".",
    "",
    "~",
    "...",
    ".. ",
    "..\\",
    "%2e%2e",
    "．．",
    "..\u200b",
    "secret.txt",
    "etc",
    "passwd",
    "proc/self/root",
    "\0",
    "/",
    "//",
    "C:",
    "con",
    "GIT~1",
    ".git.",
    ".g\u200dit",
    "\ud800",
    "x" * 256,
    "game",
    "scene",
    "deep",
    "one.txt",
    "a.txt",
    "config",
    "sub",
    *LINKS,
    *HIDDEN,
    *FILES,
]
LETTERS = "./\\~ :%*?\0\n\r\t\u200b\u202eeаaXx雪"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree in which every file contains its own path, next to a secret."""
    root = tmp_path / "root"
    for name in FILES + HIDDEN:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"/{name}")
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    (tmp_path / "secret.txt").write_text("SECRET")
    return root


def mutate(rng: random.Random) -> str:
    """Return a path with a few mutations."""
    parts = rng.choice(FILES + HIDDEN + list(LINKS)).split("/")
    if rng.random() < 0.1:  # a longer spelling of the same file
        for _ in range(rng.randrange(12)):
            parts.insert(rng.randrange(1, len(parts) + 1), rng.choice([".", ""]))
        return "/".join(parts)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(parts) + 1)
        parts[at : at + rng.randrange(2)] = [rng.choice(PATH_PARTS)]
    path = "/".join(parts)
    if path and rng.random() < 0.3:
        at = rng.randrange(len(path))
        path = path[:at] + rng.choice(LETTERS) + path[at + rng.randrange(2) :]
    return path.swapcase() if rng.random() < 0.05 else path


def kernel_results(root: Path, paths: list[str]) -> list[str | None]:
    completed = subprocess.run(
        [sys.executable, "-m", "tests.support.workspace.chroot_oracle", str(root)],
        cwd=REPOSITORY,
        input=json.dumps(paths),
        capture_output=True,
        text=True,
        check=True,
    )
    resolved: list[str | None] = json.loads(completed.stdout)
    return resolved


def sandbox_result(sandbox: Sandbox, path: str) -> str:
    try:
        return sandbox.read(path, limit=1000).decode()
    except WorkspaceFailed as failed:
        return failed.code


@pytest.mark.timeout(600)
def test_no_mutated_path_reads_what_it_does_not_name(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(5)
    found: dict[str, None] = {}
    while len(found) < PATHS:
        found[mutate(rng)] = None
    paths = list(found)
    read = 0
    with Sandbox(root, {".git", ".env", "node_modules"}) as sandbox:
        results = [sandbox_result(sandbox, path) for path in paths]
        monkeypatch.setattr(safe_open, "has_openat2", lambda: False)
        for path, result in list(zip(paths, results, strict=True))[::4]:
            assert sandbox_result(sandbox, path) == result, path
    assert set(results) - {f"/{name}" for name in FILES} == {
        "E_DENY_PATH",
        "E_NOT_FOUND",
        "E_BAD_ARGS",
    }
    for path, result, kernel_path in zip(paths, results, kernel_results(root, paths), strict=True):
        normalized = "/" + "/".join(part for part in path.split("/") if part not in {"", "."})
        if result.startswith("/"):
            read += 1
            # No link, no forbidden name, nothing from outside: an ordinary file of this name.
            assert result == kernel_path == normalized, path
            assert result[1:] in FILES, path
        elif kernel_path == normalized and normalized[1:] in FILES:
            assert path.startswith("/") or path.endswith(("/", "/.")), path
    assert read > 100
