"""The output of ripgrep is read completely and checked again, and the search does not need it where
ripgrep fails."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from runners.workspace.errors import WorkspaceTimeout
from runners.workspace.files import safe_open
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.search import file_search, ripgrep
from runners.workspace.search.patterns import line_pattern


def put(root: Path, path: str, data: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(data)


def found(root: Path, regex: str, at_most: int = 99) -> list[tuple[str, int]]:
    search = file_search.SearchQuery(
        ".", line_pattern(regex), None, at_most, 9999, time.monotonic() + 60
    )
    with Sandbox(root, (".git",)) as box:
        return [(match.path, match.line) for match in file_search.search_below(box, search)]


@pytest.fixture
def false_ripgrep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake ripgrep, and a tree of files next to it."""
    monkeypatch.setattr(file_search, "_FIRST_FILES", 1)
    put(tmp_path, "tree/!", "none")
    put(tmp_path, "tree/b", "word")
    put(tmp_path, "tree/c", "word")
    program = tmp_path / "rg"
    program.touch(0o755)
    monkeypatch.setattr(ripgrep, "find_ripgrep", lambda: str(program))
    return program


@pytest.mark.parametrize("said", ["echo wrong >&2; exit 2", "kill -9 $$", "exit 3"])
def test_a_ripgrep_that_fails_halfway_does_not_change_the_result(
    false_ripgrep: Path, said: str
) -> None:
    names = [f"b{number:03}" for number in range(600)]
    for name in names:
        put(false_ripgrep.parent / "tree", name, "word")
    told = "".join(f"./{name}\\0000:x\\n" for name in names[:500])
    false_ripgrep.write_text(f"#!/bin/sh\nprintf '{told}'\n{said}\n")
    whole = [("b", 1), *((name, 1) for name in names), ("c", 1)]
    assert found(false_ripgrep.parent / "tree", "word", at_most=999) == whole


@pytest.mark.parametrize("at_once", [True, False])
def test_the_output_of_ripgrep_is_checked_again(
    false_ripgrep: Path, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not at_once:
        monkeypatch.setattr(safe_open, "has_openat2", lambda: False)
    tree = false_ripgrep.parent / "tree"
    put(tree, "d/.git/x", "word")
    (tree / "link").symlink_to("b")
    os.mkfifo(tree / "pipe")
    told = [
        "./c",
        "./d/.git/x",
        "./link",
        "./pipe",
        "./../rg",
        "/etc/passwd",
        "./gone",
        "./a",
        "./",
    ]
    names = "".join(f"{name}\\0000:x\\n" for name in told)
    false_ripgrep.write_text(f"#!/bin/sh\nprintf '{names}'\n")
    assert found(tree, "word|root|printf") == [("c", 1)]


@pytest.mark.parametrize(
    ("said", "searched"),
    [
        ("./b\\0000:x\\n", ["b"]),
        ("./b\\0000:x\\n./b: WARNING: stopped searching binary file after match (x)\\n", ["b"]),
        ("./b\\0000:x\\n./b: WARNING: what is new here\\n./c\\0000:x\\n", ["b", "c"]),
        ("./b\\0000:x\\n./c", ["b", "c"]),
        ("./b\\0001:x\\n", ["b"]),  # no line starts there
        ("./b\\00099:x\\n", ["b"]),
        ("./b\\0005:x\\n", ["b"]),  # nor after the last line break
        ("./b\nc\\0000:x\\n", ["b", "c"]),
        ("b" * 70_000, ["b", "c"]),
        ("", []),
    ],
)
def test_the_output_of_ripgrep_is_read_completely_or_ignored(
    false_ripgrep: Path, said: str, searched: list[str]
) -> None:
    tree = false_ripgrep.parent / "tree"
    for name in ("b", "c"):
        put(tree, name, "word\n")
    (false_ripgrep.parent / "said").write_bytes(said.encode().decode("unicode_escape").encode())
    false_ripgrep.write_text('#!/bin/sh\nexec cat "${0%rg}said"\n')
    assert found(tree, "word|^$") == [(name, 1) for name in searched]


def test_a_file_with_more_lines_than_ripgrep_reports_is_searched_completely(
    false_ripgrep: Path,
) -> None:
    tree = false_ripgrep.parent / "tree"
    put(tree, "b", "word\n" * 100)
    told = "".join(f"./b\\000{5 * line}:x\\n" for line in range(20))
    false_ripgrep.write_text(f"#!/bin/sh\nprintf '{told}'\n")
    assert found(tree, "word", at_most=999) == [("b", line) for line in range(1, 101)]
    assert found(tree, "word", at_most=30) == [("b", line) for line in range(1, 31)]


def test_a_ripgrep_that_does_not_end_is_killed(false_ripgrep: Path, tmp_path: Path) -> None:
    process = tmp_path / "pid"
    false_ripgrep.write_text(f"#!/bin/sh\necho $$ > {process}\nexec sleep 600\n")
    search = file_search.SearchQuery(".", line_pattern("word"), None, 9, 99, time.monotonic() + 2)
    with Sandbox(tmp_path / "tree", ()) as box, pytest.raises(WorkspaceTimeout):
        file_search.search_below(box, search)
    with pytest.raises(ProcessLookupError):
        os.kill(int(process.read_text()), 0)
