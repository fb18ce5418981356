"""100 000 mutated paths: whatever a sandbox reads is the file that the kernel, confined to the
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

REPOSITORY = Path(__file__).parent.parent.parent
PATHS = 100_000
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
PIECES = [
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


def mutated(chance: random.Random) -> str:
    """Return a path with a few mutations."""
    parts = chance.choice(FILES + HIDDEN + list(LINKS)).split("/")
    if chance.random() < 0.1:  # a longer spelling of the same file
        for _ in range(chance.randrange(12)):
            parts.insert(chance.randrange(1, len(parts) + 1), chance.choice([".", ""]))
        return "/".join(parts)
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(parts) + 1)
        parts[at : at + chance.randrange(2)] = [chance.choice(PIECES)]
    path = "/".join(parts)
    if path and chance.random() < 0.3:
        at = chance.randrange(len(path))
        path = path[:at] + chance.choice(LETTERS) + path[at + chance.randrange(2) :]
    return path.swapcase() if chance.random() < 0.05 else path


def oracle(root: Path, paths: list[str]) -> list[str | None]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.chroot_oracle", str(root)],
        cwd=REPOSITORY,
        input=json.dumps(paths),
        capture_output=True,
        text=True,
        check=True,
    )
    told: list[str | None] = json.loads(done.stdout)
    return told


def came_of(box: Sandbox, path: str) -> str:
    try:
        return box.read(path, limit=1000).decode()
    except WorkspaceFailed as failed:
        return failed.code


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_mutated_path_reads_what_it_does_not_name(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(5)
    found: dict[str, None] = {}
    while len(found) < PATHS:
        found[mutated(chance)] = None
    paths = list(found)
    read = 0
    with Sandbox(root, {".git", ".env", "node_modules"}) as box:
        came = [came_of(box, path) for path in paths]
        monkeypatch.setattr(safe_open, "has_openat2", lambda: False)
        for path, one in list(zip(paths, came, strict=True))[::4]:
            assert came_of(box, path) == one, path
    assert set(came) - {f"/{name}" for name in FILES} == {
        "E_DENY_PATH",
        "E_NOT_FOUND",
        "E_BAD_ARGS",
    }
    for path, one, meant in zip(paths, came, oracle(root, paths), strict=True):
        words = "/" + "/".join(part for part in path.split("/") if part not in {"", "."})
        if one.startswith("/"):
            read += 1
            # No link, no forbidden name, nothing from outside: an ordinary file of this name.
            assert one == meant == words, path
            assert one[1:] in FILES, path
        elif meant == words and words[1:] in FILES:
            assert path.startswith("/") or path.endswith(("/", "/.")), path
    assert read > 300
