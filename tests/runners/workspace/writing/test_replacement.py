"""Find and replace: literal or by a linear-time pattern, counted, completely or not at all."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from runners.workspace.errors import BadArguments, NotText, PathNotFound, TooLarge, WorkspaceTimeout
from runners.workspace.workspace import ProjectWorkspace
from runners.workspace.writing.replacement import replace_all
from runners.workspace.writing.snapshots import list_snapshots, read_snapshot
from tests.support.workspace.workspace_calls import call_tool, workspace_at

TEXT = "hello a.b\naxb Hello\nhello\r\n海 $1 /hello/"


def replace_text(
    text: str, find: str, replace: str, flags: str | None = None, **limits: Any
) -> Any:
    """Return (text, count) after a replacement."""
    limits = {"size_limit": 10**6, "deadline": time.monotonic() + 60, **limits}
    result = replace_all(text, find=find, replace=replace, flags=flags, **limits)
    return result.text, result.count


@pytest.mark.parametrize(
    ("find", "flags", "count"),
    [
        ("a.b", None, 1),  # literal
        ("a.b", "", 2),  # a pattern without flags
        ("/a.b/", None, 2),
        ("/HELLO/i", None, 4),
        ("/^hello$/m", None, 0),  # \r is a character of its line, as everywhere here
        (r"/^hello\r?$/m", None, 1),
        ("(?m)^hello", None, 2),
        ("(?i)hello", None, 4),
        ("hello", "i", 4),
        ("hello", "gi", 4),
        ("/hello/", "", 1),  # with flags, find is the pattern itself
        (r"/\/hello\//", None, 1),
        ("/x/y/", None, 0),  # a path, not a pattern: a slash in it is not escaped
        ("/hello/z", None, 0),  # no such flag, so not a pattern
        ("(?:a)", None, 0),
        ("b\na", None, 1),
        ("b.a", "s", 1),
        ("nothing", None, 0),
    ],
)
def test_the_find_text_is_literal_or_a_pattern(find: str, flags: str | None, count: int) -> None:
    text, found = replace_text(TEXT, find, "_", flags)
    assert (found, text.count("_")) == (count, count)


@pytest.mark.parametrize(
    ("replace", "inserted"),
    [
        ("$2$1", "ba"),
        ("$&$&", "abab"),
        ("$$1", "$1"),
        ("$12", "a2"),
        ("$0$", "$0$"),
        ("$<second>", "b"),
        ("\\1\\n", "\\1\\n"),
        ("$`", "$`"),
        ("$ 1", "$ 1"),
    ],
)
def test_the_replacement_is_inserted(replace: str, inserted: str) -> None:
    assert replace_text("-ab-", "(a)(?P<second>b)", replace, "") == (f"-{inserted}-", 1)


def test_a_literal_inserts_the_replacement_unchanged() -> None:
    assert replace_text("a-a", "a", "$&$1$$\\1") == ("$&$1$$\\1-$&$1$$\\1", 2)


def test_an_unmatched_group_is_empty_and_empty_matches_are_found() -> None:
    assert replace_text("b", "(a)?b", "<$1>", "") == ("<>", 1)
    assert replace_text("海b", "x*", "-", "") == ("-海-b-", 3)
    assert replace_text("a\nb", "(?m)^", "> ") == ("> a\n> b", 2)
    assert replace_text("abxc", "x*", "-", "") == ("-a-b--c-", 5)


@pytest.mark.parametrize(
    ("find", "replace", "flags"),
    [
        ("(", "x", ""),
        ("(?<=a)b", "x", ""),
        ("a{1,100000}", "x", ""),
        ("a", "$9", ""),
        ("a", "$<no>", ""),
        (r"(a)\1", "x", ""),
        ("a", "x", "y"),
        ("a", "x", "ii!"),
        ("", "x", None),
        ("a" * 1001, "x", ""),
        ("(((a{1,99}){1,99}){1,99})", "x", ""),
        ("\ud800", "x", ""),
    ],
)
def test_an_invalid_replacement_is_reported(
    find: str, replace: str, flags: str | None, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadArguments):
        replace_text("abc", find, replace, flags)
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_a_result_over_the_size_limit_is_never_created() -> None:
    for find, flags in (("x", None), ("x", "")):
        with pytest.raises(TooLarge):
            replace_text("x" * 1000, find, "$&" * 1_000_000, flags)


def test_matches_that_each_scan_the_rest_of_the_text_end_at_the_deadline() -> None:
    with pytest.raises(WorkspaceTimeout):
        replace_text("x" * 2_000_000, "(?s)x(.*z)?", "y", "", deadline=time.monotonic() + 0.3)


@pytest.fixture
def workspace(tmp_path: Path) -> ProjectWorkspace:
    """A workspace with a file."""
    created = workspace_at(tmp_path)
    (created.root / "a.txt").write_bytes(b"one two\r\none\n")
    return created


def test_the_file_is_changed_without_a_preview_and_a_snapshot_is_stored(
    workspace: ProjectWorkspace,
) -> None:
    answer = call_tool(
        workspace, "replace_in_file", {"path": "a.txt", "find": "one", "replace": "1"}
    )
    [snapshot] = list_snapshots(workspace.state)
    assert answer == {"count": 2}
    assert (workspace.root / "a.txt").read_bytes() == b"1 two\r\n1\n"
    assert read_snapshot(workspace.state, snapshot.id)[1] == "one two\r\none\n"


def test_without_a_match_nothing_is_written(workspace: ProjectWorkspace) -> None:
    before = (workspace.root / "a.txt").stat()
    args = {"path": "a.txt", "find": "three", "replace": "3"}
    assert call_tool(workspace, "replace_in_file", args) == {"count": 0}
    assert (workspace.root / "a.txt").stat().st_ino == before.st_ino
    assert list_snapshots(workspace.state) == []


@pytest.mark.parametrize(
    ("path", "replace", "refusal"),
    [
        ("b.txt", "x", PathNotFound),
        ("a.txt", "\ud800", NotText),
        ("a.txt", "\0", NotText),
        ("a.txt", "x" * 60, TooLarge),
        ("", "x", BadArguments),
    ],
)
def test_a_replacement_that_cannot_be_written_changes_nothing(
    tmp_path: Path, path: str, replace: str, refusal: type[Exception]
) -> None:
    workspace = workspace_at(tmp_path, max_read_bytes=100)
    (workspace.root / "a.txt").write_text("one one")
    with pytest.raises(refusal):
        call_tool(workspace, "replace_in_file", {"path": path, "find": "one", "replace": replace})
    assert (workspace.root / "a.txt").read_text() == "one one"
    assert list_snapshots(workspace.state) == []
