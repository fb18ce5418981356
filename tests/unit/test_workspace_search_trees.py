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
from tests.support.file_watch import watch_opened

needs_ripgrep = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
FORBIDDEN = (".git", "node_modules", ".env", "Secret Notes", "a[b]", "{x,y}", "ß!")
DENIED = [
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
ALLOWED = [
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
ONLY_JUDGED = [".g\u200bit", "SS!", "ß!", "\uff4e\uff4fde_modules", "aux.txt", "NUL", ".git..."]
TEXTS = ["word", "none", "word\nno\na word", "\ufeffword", "word\0"]


def put(root: Path, path: str, data: str | bytes) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data.encode() if isinstance(data, str) else data)


def found(
    root: Path, regex: str, at_most: int = 99, glob: str | None = None, path: str = "."
) -> list[tuple[str, int]]:
    search = file_search.SearchQuery(
        path, line_pattern(regex), glob, at_most, 9999, time.monotonic() + 60
    )
    with Sandbox(root, FORBIDDEN) as box:
        return [(match.path, match.line) for match in file_search.search_below(box, search)]


@pytest.fixture(params=["all that is left", "in order", "alone"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the files after the first one are found: by ripgrep, by both, or by our own walk."""
    alone = request.param == "alone"
    if not alone and shutil.which("rg") is None:
        pytest.skip("ripgrep is not installed")
    if alone:
        monkeypatch.setattr(ripgrep, "find_ripgrep", lambda: None)
    monkeypatch.setattr(file_search, "_FIRST_FILES", 1)
    monkeypatch.setattr(file_search, "_DENSE_RATIO", 2.0)
    monkeypatch.setattr(
        file_search, "_MAX_SORTED_WALK", 0 if request.param == "all that is left" else 10**9
    )
    return str(request.param)


def test_every_walk_finds_the_allowed_files_and_no_others(way: str, tmp_path: Path) -> None:
    put(tmp_path, "!first", "word")
    allowed = [f"{folder}{name}/{name}" for folder in ("", "d/") for name in ALLOWED]
    for name in allowed:
        put(tmp_path, name, "word")
    for name in DENIED + ONLY_JUDGED:
        put(tmp_path, f"d/a/{name}/in", "word")
        put(tmp_path, f"d/x/{name}", "word")
    assert found(tmp_path, "word") == [(name, 1) for name in sorted(["!first", *allowed])]


@needs_ripgrep
@settings(max_examples=60, deadline=None)
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
    at_most: int,
    glob: str | None,
    first: int,
    in_order: int,
    many: float,
) -> None:
    root = tmp_path_factory.mktemp("tree")
    for above, name, text in files:
        put(root, "/".join([*above, name]), text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_search, "_FIRST_FILES", first)
        patch.setattr(file_search, "_MAX_SORTED_WALK", in_order)
        patch.setattr(file_search, "_DENSE_RATIO", many)
        with_it = found(root, "^(a )?word", at_most, glob)
        patch.setattr(ripgrep, "find_ripgrep", lambda: None)
        alone = found(root, "^(a )?word", 99, glob)
    assert with_it == alone[:at_most]
    assert alone == sorted(alone)


@needs_ripgrep
@pytest.mark.parametrize("in_order", [0, 10**9])
def test_a_forbidden_file_is_not_even_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_order: int
) -> None:
    monkeypatch.setattr(file_search, "_FIRST_FILES", 1)
    monkeypatch.setattr(file_search, "_DENSE_RATIO", 2.0)
    monkeypatch.setattr(file_search, "_MAX_SORTED_WALK", in_order)
    put(tmp_path, "!first", "word")
    put(tmp_path, "sub/ok", "word")
    for name in DENIED:
        put(tmp_path, f"sub/{name}", "word")
        put(tmp_path, f"sub/deep/{name}/in", "word")
    denied = [tmp_path / "sub" / name for name in DENIED]
    denied += [tmp_path / "sub/deep" / name for name in DENIED]
    denied += [one / "in" for one in denied if one.is_dir()]
    with watch_opened([tmp_path / "sub/ok", *denied]) as opened:
        assert found(tmp_path, "word") == [("!first", 1), ("sub/ok", 1)]
    assert opened == {tmp_path / "sub/ok"}


@needs_ripgrep
def test_the_exclusion_globs_for_ripgrep_match_no_allowed_name(tmp_path: Path) -> None:
    forbidden = forbidden_names(frozenset(FORBIDDEN))
    for name in [*DENIED, *ALLOWED, *ONLY_JUDGED]:
        put(tmp_path, name, "word")
    command = ["rg", "--no-config", "--no-ignore", "--hidden", "--files", "--null"]
    command += [f"--iglob=!{forbidden.as_ripgrep_glob()}", "./"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout
    kept = {name.removeprefix("./") for name in told.decode().split("\0")} - {""}
    assert kept >= set(ALLOWED)
    assert not kept.intersection(DENIED)


@given(st.lists(st.sampled_from([*DENIED, *ALLOWED, *ONLY_JUDGED, "f.txt", "\udcff", "con~x"])))
def test_names_are_checked_together_with_the_same_result_as_one_by_one(names: list[str]) -> None:
    forbidden = forbidden_names(frozenset(FORBIDDEN))
    one_by_one = [name for name in names if is_unicode(name) and not forbidden.matches(name)]
    assert forbidden.allowed(names) == one_by_one


def test_byte_order_marks_make_no_difference_between_the_walks(way: str, tmp_path: Path) -> None:
    put(tmp_path, "!first", "word")
    put(tmp_path, "bom", b"\xef\xbb\xbfword\r\n")
    put(tmp_path, "inside", b"x\n\xef\xbb\xbfword\n")
    put(tmp_path, "utf-16", "word 雪".encode("utf-16"))
    put(tmp_path, "no-nul", "雪雪".encode("utf-16"))
    put(tmp_path, "as-if-16", b"\xff\xfeword\nword")
    put(tmp_path, "broken", b"\xe9\xa0\nword\xff\n")
    assert found(tmp_path, "^word") == [("!first", 1), ("bom", 1), ("broken", 2)]


def test_files_are_found_in_order_and_only_up_to_the_limit(tmp_path: Path) -> None:
    for path in ("a-/1", "a/2", "a.b", "a/-/3", "b/1", "b/.git/x", "c", "a/2-"):
        put(tmp_path, path, "")
    with Sandbox(tmp_path, FORBIDDEN) as box:
        whole = box.find(".").files
        walk = box.iter_files_sorted(".", box.path_filter(), deadline=time.monotonic() + 60)
        first = list(islice(walk, 3))
        put(tmp_path, "b/0", "")  # the walk did not reach it
        assert first + list(walk) == sorted([*whole, "b/0"])


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 3)), max_size=9), st.data())
def test_the_first_matches_are_returned_whatever_the_order_of_arrival(
    files: list[tuple[str, int]], data: st.DataObject
) -> None:
    at_most = data.draw(st.integers(1, 9))
    kept, every = FirstMatches(at_most), []
    for path, lines in dict(files).items():
        matches = [Match(path, line, "") for line in range(1, lines + 1)]
        every += matches
        if kept.wants(path):
            kept.add(matches)
    assert kept.sorted() == sorted(every)[:at_most]
    assert kept.enough == (len(every) >= at_most)
