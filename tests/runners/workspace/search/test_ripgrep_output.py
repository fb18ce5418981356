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


def write_file(root: Path, path: str, data: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(data)


def search_matches(root: Path, regex: str, max_matches: int = 99) -> list[tuple[str, int]]:
    search = file_search.SearchQuery(
        ".", line_pattern(regex), None, max_matches, 9999, time.monotonic() + 60
    )
    with Sandbox(root, (".git",)) as box:
        return [(match.path, match.line) for match in file_search.search_below(box, search)]


@pytest.fixture
def fake_ripgrep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake ripgrep, and a tree of files next to it."""
    monkeypatch.setattr(file_search, "_FIRST_FILES", 1)
    write_file(tmp_path, "tree/!", "none")
    write_file(tmp_path, "tree/b", "word")
    write_file(tmp_path, "tree/c", "word")
    program = tmp_path / "rg"
    program.touch(0o755)
    monkeypatch.setattr(ripgrep, "find_ripgrep", lambda: str(program))
    return program


@pytest.mark.parametrize("last_lines", ["echo wrong >&2; exit 2", "kill -9 $$", "exit 3"])
def test_a_ripgrep_that_fails_halfway_does_not_change_the_result(
    fake_ripgrep: Path, last_lines: str
) -> None:
    names = [f"b{number:03}" for number in range(600)]
    for name in names:
        write_file(fake_ripgrep.parent / "tree", name, "word")
    reported = "".join(f"./{name}\\0000:x\\n" for name in names[:500])
    fake_ripgrep.write_text(f"#!/bin/sh\nprintf '{reported}'\n{last_lines}\n")
    expected = [("b", 1), *((name, 1) for name in names), ("c", 1)]
    assert search_matches(fake_ripgrep.parent / "tree", "word", max_matches=999) == expected


@pytest.mark.parametrize("at_once", [True, False])
def test_the_output_of_ripgrep_is_checked_again(
    fake_ripgrep: Path, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not at_once:
        monkeypatch.setattr(safe_open, "has_openat2", lambda: False)
    tree = fake_ripgrep.parent / "tree"
    write_file(tree, "d/.git/x", "word")
    (tree / "link").symlink_to("b")
    os.mkfifo(tree / "pipe")
    reported = [
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
    names = "".join(f"{name}\\0000:x\\n" for name in reported)
    fake_ripgrep.write_text(f"#!/bin/sh\nprintf '{names}'\n")
    assert search_matches(tree, "word|root|printf") == [("c", 1)]


@pytest.mark.parametrize(
    ("output", "searched_files"),
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
    fake_ripgrep: Path, output: str, searched_files: list[str]
) -> None:
    tree = fake_ripgrep.parent / "tree"
    for name in ("b", "c"):
        write_file(tree, name, "word\n")
    (fake_ripgrep.parent / "output").write_bytes(output.encode().decode("unicode_escape").encode())
    fake_ripgrep.write_text('#!/bin/sh\nexec cat "${0%rg}output"\n')
    assert search_matches(tree, "word|^$") == [(name, 1) for name in searched_files]


def test_a_file_with_more_lines_than_ripgrep_reports_is_searched_completely(
    fake_ripgrep: Path,
) -> None:
    tree = fake_ripgrep.parent / "tree"
    write_file(tree, "b", "word\n" * 100)
    reported = "".join(f"./b\\000{5 * line}:x\\n" for line in range(20))
    fake_ripgrep.write_text(f"#!/bin/sh\nprintf '{reported}'\n")
    assert search_matches(tree, "word", max_matches=999) == [("b", line) for line in range(1, 101)]
    assert search_matches(tree, "word", max_matches=30) == [("b", line) for line in range(1, 31)]


@pytest.mark.slow
def test_a_ripgrep_that_does_not_end_is_killed(fake_ripgrep: Path, tmp_path: Path) -> None:
    process = tmp_path / "pid"
    fake_ripgrep.write_text(f"#!/bin/sh\necho $$ > {process}\nexec sleep 600\n")
    search = file_search.SearchQuery(".", line_pattern("word"), None, 9, 99, time.monotonic() + 2)
    with Sandbox(tmp_path / "tree", ()) as box, pytest.raises(WorkspaceTimeout):
        file_search.search_below(box, search)
    with pytest.raises(ProcessLookupError):
        os.kill(int(process.read_text()), 0)
