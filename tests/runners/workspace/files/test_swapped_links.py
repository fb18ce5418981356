"""Links are swapped in at least 10 000 times while files are read, written, listed and searched: no
byte from outside is read, and none is written there."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from runners.workspace.errors import WorkspaceFailed
from runners.workspace.files import safe_open
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.search import file_search
from runners.workspace.search.patterns import line_pattern

REPOSITORY = Path(__file__).parents[4]
SWAPS = 10_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder and a file inside, and links to the same names outside to swap them with."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder, word in ((root / "d", "inside"), (outside, "OUTSIDE")):
        folder.mkdir(parents=True)
        (folder / "x.txt").write_text(word)
    (root / "f.txt").write_text("inside")
    (root / "d_link").symlink_to(outside)
    (root / "f_link").symlink_to(outside / "x.txt")
    return root


@contextlib.contextmanager
def swap_links(root: Path) -> Iterator[Callable[[], int]]:
    """Swap within the block; yield a function that stops it and returns the number of swaps."""
    command = [sys.executable, "-m", "tests.support.workspace.link_swapper", str(root)]
    names = ["d", "d_link", "f.txt", "f_link"]
    with subprocess.Popen(
        [*command, *names], cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as swapper:
        yield lambda: int(swapper.communicate()[0])


def result_of(operation: Callable[[], object]) -> str:
    """Return the content that was read, "done", or the code of the failure."""
    try:
        returned = operation()
    except WorkspaceFailed as failed:
        return failed.code
    return returned.decode() if isinstance(returned, bytes) else "done"


def search(sandbox: Sandbox) -> bytes:
    """Return the previews of a search in the files, one after the other."""
    query = file_search.SearchQuery(
        ".", line_pattern("side|SIDE"), None, 100, 1000, time.monotonic() + 60
    )
    previews = {match.preview for match in file_search.search_below(sandbox, query)}
    assert previews <= {"inside"}
    return b""


@pytest.mark.parametrize("resolution", ["at once", "step by step"])
def test_no_byte_crosses_a_swapped_link(
    root: Path, resolution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_search, "_FIRST_FILES", 1)  # ripgrep searches the others
    monkeypatch.setattr(file_search, "_DENSE_RATIO", 2.0)
    if resolution == "step by step":
        monkeypatch.setattr(safe_open, "has_openat2", lambda: False)
    read: Counter[str] = Counter()
    wrote: Counter[str] = Counter()
    with Sandbox(root, ()) as sandbox, swap_links(root) as stop:
        end = time.monotonic() + 60
        while time.monotonic() < end and min(read["inside"], read["E_DENY_PATH"]) < 1000:
            for _ in range(50):
                for name in ("d/x.txt", "f.txt", "d_link/x.txt", "f_link"):
                    read[result_of(partial(sandbox.read, name, limit=100))] += 1
            for name in ("d/x.txt", "f.txt", "d/new/y.txt"):
                wrote[result_of(partial(sandbox.replace, name, b"inside"))] += 1
            read[result_of(partial(search, sandbox))] += 1
            found = sandbox.find(".")
            assert not any("x.txt/" in path for path in found.files + found.folders)
        swaps = stop()
    assert swaps > SWAPS
    assert set(read) <= {"inside", "E_DENY_PATH", "E_NOT_FOUND", "E_BAD_ARGS", ""}, read
    assert min(read["inside"], read["E_DENY_PATH"], wrote["done"], wrote["E_DENY_PATH"]) > 0
    outside = root.parent / "outside"
    assert [(p.name, p.read_text()) for p in outside.iterdir()] == [("x.txt", "OUTSIDE")]
