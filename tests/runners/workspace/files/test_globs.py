"""Many globs at once: their number is limited, and matching them is as fast as matching one."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from runners.workspace.errors import BadArguments, WorkspaceTimeout
from runners.workspace.files.globs import MAX_EXPANDED, Globs
from runners.workspace.files.listing import PathFilter, find_below
from runners.workspace.files.paths import forbidden_names


def accepts(globs: list[str], path: str) -> bool:
    return PathFilter(forbidden_names(frozenset()), globs).accepts(path)


def test_the_total_number_of_globs_is_limited() -> None:
    many = [f"{n}{{a,b}}{{a,b}}{{a,b}}{{a,b}}{{a,b}}{{a,b}}" for n in range(5)]
    with pytest.raises(BadArguments, match=str(MAX_EXPANDED)):
        Globs(many)
    assert accepts(many[:4], "0aaaaaa")
    assert accepts(["{a,b}"] * 100, "b")  # equal globs count once


def test_names_and_patterns_are_matched_together() -> None:
    globs = ["a.b", "x*", "[0-9]", "d/?", "d/ef", "d/**/deep"]
    matching = ["a.b", "x", "xyz", "7", "d/q", "d/ef", "d/deep", "d/e/deep"]
    not_matching = ["a_b", "a.bc", "aa.b", "77", "y", "d/efg", "d/e/f", "a.b\n", "ef"]
    assert [path for path in matching + not_matching if accepts(globs, path)] == matching


def test_a_folder_is_entered_whether_or_not_its_name_matters() -> None:
    for globs in (["**"], ["**/*.txt"], ["a/**", "?"], ["a/b/*.txt", "**/c"], ["a*"]):
        matched = Globs(globs)
        states = [matched.start, *(matched.advance(matched.start, name) for name in "ab")]
        for state in states:
            advanced = [(name, matched.advance(state, name)) for name in ("a", "b", "c")]
            assert matched.matching_subfolders(state, ["a", "b", "c"]) == [
                pair for pair in advanced if pair[1]
            ]
    assert accepts(["*.txt", "*.t?t"], "a.txt")
    assert not accepts(["*.txt", "*md"], "a.txt.gz")
    assert accepts(["*.txt", "*md"], "amd")


@pytest.mark.parametrize("kind", ["files", "folders"])
def test_the_deadline_also_ends_a_walk_inside_a_large_folder(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1500):
        path = tmp_path / str(number)
        path.touch() if kind == "files" else path.mkdir()
    clock_values = iter([0.0, 0.0])  # once at the folder, once after its first thousand files
    monkeypatch.setattr(time, "monotonic", lambda: next(clock_values, 9.0))
    opened = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(WorkspaceTimeout):
            find_below(opened, PathFilter(forbidden_names(frozenset()), ["*1"]), 1.0)
    finally:
        os.close(opened)
