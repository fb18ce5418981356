"""The search result does not depend on how the tree is walked, and forbidden files are not
opened."""

from __future__ import annotations

import shutil
import subprocess
import time
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runners.workspace.files.paths import forbidden_names, is_unicode
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.search import file_search, ripgrep
from runners.workspace.search.first_matches import FirstMatches
from runners.workspace.search.line_matching import Match
from runners.workspace.search.patterns import line_pattern
from tests.support.workspace.file_watch import watch_opened

needs_ripgrep = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
FORBIDDEN = (".git", "node_modules", ".env", "Secret Notes", "a[b]", "{x,y}", "ß!")
FORBIDDEN_NAMES = [
    ".git",
    ".GIT",
    ".git.",
    ".git .",
    ".git:s",
    "git~1",
    "GIT~2.x",
    "Node_Modules",
    ".env",
    ".env.local",
    ".ENV.x",
    "secret notes",
    "secret~1",
    "a[b]",
    "{x,y}",
    ".continuity-0123456789abcdef.tmp",
]
ALLOWED_NAMES = [
    ".gitignore",
    ".gitx",
    ".git.x",
    "git",
    "a.git",
    "xgit~1",
    "node_modules2",
    ".envy",
    "env",
    "secret",
    "ab",
    "a",
    "x",
    "y",
    "x,y",
    "#x",
    " x",
    "x\ny",
    "雪",
    "config",
    "Con fig",
    ".continuity-1.tmp",
    "a-",
    "a.b",
    "z",
]
DENIED_BY_CHECK = [".g\u200bit", "SS!", "ß!", "\uff4e\uff4fde_modules", "aux.txt", "NUL", ".git..."]
TEXTS = ["word", "none", "word\nno\na word", "\ufeffword", "word\0"]


def write_file(root: Path, path: str, data: str | bytes) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data.encode() if isinstance(data, str) else data)


def search_matches(
    root: Path, regex: str, max_matches: int = 99, glob: str | None = None, path: str = "."
) -> list[tuple[str, int]]:
    search = file_search.SearchQuery(
        path, line_pattern(regex), glob, max_matches, 9999, time.monotonic() + 60
    )
    with Sandbox(root, FORBIDDEN) as box:
        return [(match.path, match.line) for match in file_search.search_below(box, search)]


@pytest.fixture(params=["ripgrep", "both", "own walk"])
def strategy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the files after the first one are found: by ripgrep, by both, or by our own walk."""
    without_ripgrep = request.param == "own walk"
    if not without_ripgrep and shutil.which("rg") is None:
        pytest.skip("ripgrep is not installed")
    if without_ripgrep:
        monkeypatch.setattr(ripgrep, "find_ripgrep", lambda: None)
    monkeypatch.setattr(file_search, "_FIRST_FILES", 1)
    monkeypatch.setattr(file_search, "_DENSE_RATIO", 2.0)
    monkeypatch.setattr(file_search, "_MAX_SORTED_WALK", 0 if request.param == "ripgrep" else 10**9)
    return str(request.param)


def test_every_walk_finds_the_allowed_files_and_no_others(strategy: str, tmp_path: Path) -> None:
    write_file(tmp_path, "!first", "word")
    allowed = [f"{folder}{name}/{name}" for folder in ("", "d/") for name in ALLOWED_NAMES]
    for name in allowed:
        write_file(tmp_path, name, "word")
    for name in FORBIDDEN_NAMES + DENIED_BY_CHECK:
        write_file(tmp_path, f"d/a/{name}/in", "word")
        write_file(tmp_path, f"d/x/{name}", "word")
    assert search_matches(tmp_path, "word") == [(name, 1) for name in sorted(["!first", *allowed])]


@needs_ripgrep
@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(["a", "a-", "a.b", ".env", "雪"]), max_size=3),
            st.sampled_from(["1", "2.txt", "a.txt", ".git.", "é"]),
            st.sampled_from(TEXTS),
        ),
        max_size=12,
    ),
    st.integers(1, 6),
    st.sampled_from([None, "*.txt", "a/**", "**/a/*", "*"]),
    st.integers(1, 3),
    st.sampled_from([1, 10**9]),
    st.sampled_from([0.5, 2.0]),
)
def test_any_tree_gives_the_same_result_with_and_without_ripgrep(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[tuple[list[str], str, str]],
    max_matches: int,
    glob: str | None,
    first_files: int,
    max_sorted_walk: int,
    dense_ratio: float,
) -> None:
    root = tmp_path_factory.mktemp("tree")
    for folders, name, text in files:
        write_file(root, "/".join([*folders, name]), text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_search, "_FIRST_FILES", first_files)
        patch.setattr(file_search, "_MAX_SORTED_WALK", max_sorted_walk)
        patch.setattr(file_search, "_DENSE_RATIO", dense_ratio)
        with_ripgrep = search_matches(root, "^(a )?word", max_matches, glob)
        patch.setattr(ripgrep, "find_ripgrep", lambda: None)
        without_ripgrep = search_matches(root, "^(a )?word", 99, glob)
    assert with_ripgrep == without_ripgrep[:max_matches]
    assert without_ripgrep == sorted(without_ripgrep)


@needs_ripgrep
@pytest.mark.parametrize("max_sorted_walk", [0, 10**9])
def test_a_forbidden_file_is_not_even_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_sorted_walk: int
) -> None:
    monkeypatch.setattr(file_search, "_FIRST_FILES", 1)
    monkeypatch.setattr(file_search, "_DENSE_RATIO", 2.0)
    monkeypatch.setattr(file_search, "_MAX_SORTED_WALK", max_sorted_walk)
    write_file(tmp_path, "!first", "word")
    write_file(tmp_path, "sub/ok", "word")
    for name in FORBIDDEN_NAMES:
        write_file(tmp_path, f"sub/{name}", "word")
        write_file(tmp_path, f"sub/deep/{name}/in", "word")
    denied = [tmp_path / "sub" / name for name in FORBIDDEN_NAMES]
    denied += [tmp_path / "sub/deep" / name for name in FORBIDDEN_NAMES]
    denied += [path / "in" for path in denied if path.is_dir()]
    with watch_opened([tmp_path / "sub/ok", *denied]) as opened:
        assert search_matches(tmp_path, "word") == [("!first", 1), ("sub/ok", 1)]
    assert opened == {tmp_path / "sub/ok"}


@needs_ripgrep
def test_the_exclusion_globs_for_ripgrep_match_no_allowed_name(tmp_path: Path) -> None:
    forbidden = forbidden_names(frozenset(FORBIDDEN))
    for name in [*FORBIDDEN_NAMES, *ALLOWED_NAMES, *DENIED_BY_CHECK]:
        write_file(tmp_path, name, "word")
    command = ["rg", "--no-config", "--no-ignore", "--hidden", "--files", "--null"]
    command += [f"--iglob=!{forbidden.as_ripgrep_glob()}", "./"]
    output = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout
    listed = {name.removeprefix("./") for name in output.decode().split("\0")} - {""}
    assert listed >= set(ALLOWED_NAMES)
    assert not listed.intersection(FORBIDDEN_NAMES)


@given(
    st.lists(
        st.sampled_from(
            [*FORBIDDEN_NAMES, *ALLOWED_NAMES, *DENIED_BY_CHECK, "f.txt", "\udcff", "con~x"]
        )
    )
)
def test_names_are_checked_together_with_the_same_result_as_one_by_one(names: list[str]) -> None:
    forbidden = forbidden_names(frozenset(FORBIDDEN))
    one_by_one = [name for name in names if is_unicode(name) and not forbidden.matches(name)]
    assert forbidden.allowed(names) == one_by_one


def test_byte_order_marks_make_no_difference_between_the_walks(
    strategy: str, tmp_path: Path
) -> None:
    write_file(tmp_path, "!first", "word")
    write_file(tmp_path, "bom", b"\xef\xbb\xbfword\r\n")
    write_file(tmp_path, "inside", b"x\n\xef\xbb\xbfword\n")
    write_file(tmp_path, "utf-16", "word 雪".encode("utf-16"))
    write_file(tmp_path, "no-nul", "雪雪".encode("utf-16"))
    write_file(tmp_path, "as-if-16", b"\xff\xfeword\nword")
    write_file(tmp_path, "broken", b"\xe9\xa0\nword\xff\n")
    assert search_matches(tmp_path, "^word") == [("!first", 1), ("bom", 1), ("broken", 2)]


def test_files_are_found_in_order_and_only_up_to_the_limit(tmp_path: Path) -> None:
    for path in ("a-/1", "a/2", "a.b", "a/-/3", "b/1", "b/.git/x", "c", "a/2-"):
        write_file(tmp_path, path, "")
    with Sandbox(tmp_path, FORBIDDEN) as box:
        all_files = box.find(".").files
        walk = box.iter_files_sorted(".", box.path_filter(), deadline=time.monotonic() + 60)
        first_files = list(islice(walk, 3))
        write_file(tmp_path, "b/0", "")  # the walk did not reach it
        assert first_files + list(walk) == sorted([*all_files, "b/0"])


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 3)), max_size=9), st.data())
def test_the_first_matches_are_returned_whatever_the_order_of_arrival(
    files: list[tuple[str, int]], data: st.DataObject
) -> None:
    max_matches = data.draw(st.integers(1, 9))
    listed, all_matches = FirstMatches(max_matches), []
    for path, lines in dict(files).items():
        matches = [Match(path, line, "") for line in range(1, lines + 1)]
        all_matches += matches
        if listed.wants(path):
            listed.add(matches)
    assert listed.sorted() == sorted(all_matches)[:max_matches]
    assert listed.enough == (len(all_matches) >= max_matches)
