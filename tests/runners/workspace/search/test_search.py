"""A search finds the same lines with and without ripgrep, in the order of their paths."""

from __future__ import annotations

import re
import shutil
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runners.workspace.errors import BadArguments, PathDenied, WorkspaceTimeout
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.search import file_search, ripgrep
from runners.workspace.search.patterns import line_pattern
from tests.support.workspace.workspace_calls import call_tool, workspace_at

needs_ripgrep = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
WORDS = [
    "foo",
    "bar",
    "foo bar",
    "é",
    "雪乃: 你好;",
    "K",
    "ſ",
    "_",
    "9",
    "-",
    "a&b",
    "[x]",
    "\t",
    " ",
    "FOO",
    "a.b",
    "x\ry",
    "$",
    "^",
    "",
    "\x0b",
    "\u00a0",
    "٣",
]
ATOMS = [
    "foo",
    "o",
    "a",
    "k",
    "s",
    ".",
    r"\d",
    r"\w",
    r"\s",
    r"\W",
    r"\D",
    r"\S",
    r"\b",
    r"\B",
    "^",
    "$",
    "[a-f]",
    "[^o]",
    r"[\w-]",
    r"[^\w]",
    r"[a&&b]",
    "[[]",
    r"[\]x]",
    "[-a]",
    r"\.",
    "é",
    "雪",
    "{",
    "x{2}",
    "[[:alpha:]]",
    r"[\W\d]",
    r"[^\n]",
    "-",
    "(?i)",
    "&",
    "~",
    r"\x41",
    r"\A",
    r"\z",
    r"\pL",
    "(?-m)",
    "#",
    "/",
    '"',
]


@pytest.fixture
def project(tmp_path: Path) -> Any:
    return workspace_at(tmp_path)


def write_files(root: Path, **files: str | bytes) -> None:
    for name, data in files.items():
        file = root / name.replace("__", "/").replace("_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)


def search_matches(workspace: Any, regex: str, **options: Any) -> list[tuple[str, int, str]]:
    results = call_tool(workspace, "search_files", {"path": ".", "regex": regex, **options})[
        "matches"
    ]
    return [(match["path"], match["line"], match["preview"]) for match in results]


def no_ripgrep() -> None:
    """Replace the lookup of ripgrep: the machine has none."""


def naive_matches(lines: str, regex: Any) -> list[int]:
    """Return the numbers of the matching lines; each line is tried separately."""
    parts = lines.removesuffix("\n").split("\n") if lines else []
    compiled = line_pattern(regex).compiled
    return [
        n for n, line in enumerate(parts, 1) if compiled.search(line.removesuffix("\r").encode())
    ]


@pytest.mark.slow
@needs_ripgrep
@settings(max_examples=250)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=4).map("".join), max_size=5),
    st.lists(st.sampled_from(ATOMS), min_size=1, max_size=4).map("".join),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "?", "*", "+", "|x"]),
    st.booleans(),
)
def test_both_engines_and_a_naive_search_find_the_same_lines(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[str],
    regex: str,
    end: str,
    quantifier: str,
    last: bool,
) -> None:
    try:
        pattern = line_pattern(regex + quantifier)
    except BadArguments:
        return
    text = end.join(lines) + (end if last else "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_search, "_FIRST_FILES", 1)
        patch.setattr(file_search, "_DENSE_RATIO", 2.0)
        root = tmp_path_factory.mktemp("tree")
        write_files(root, a_txt="nothing", b__f_txt=text)
        results = []
        for program in (shutil.which("rg"), None):
            patch.setattr(ripgrep, "find_ripgrep", partial(str, program) if program else no_ripgrep)
            with Sandbox(root, ()) as sandbox:
                search = file_search.SearchQuery(
                    "b", pattern, None, 99, 9999, time.monotonic() + 60
                )
                results.append([match.line for match in file_search.search_below(sandbox, search)])
    assert results[0] == results[1] == naive_matches(text, regex + quantifier), (
        text,
        regex + quantifier,
    )


@needs_ripgrep
def test_both_engines_search_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_search, "_FIRST_FILES", 1)
    monkeypatch.setattr(file_search, "_DENSE_RATIO", 2.0)
    project = workspace_at(tmp_path, forbidden=("build", ".git", ".ENV"))
    write_files(
        project.root, a_txt="nothing", d__build_gradle="word", d__builder="word", d___git_x="word"
    )
    write_files(
        project.root, d__build="word", d__Build="word", d___env="word", d___env_local="word"
    )
    results = []
    for program in (shutil.which("rg"), None):
        monkeypatch.setattr(
            ripgrep, "find_ripgrep", partial(str, program) if program else no_ripgrep
        )
        results.append([path for path, *_ in search_matches(project, "word")])
    assert results == [["d/.git.x", "d/build.gradle", "d/builder"]] * 2


@needs_ripgrep
def test_ripgrep_is_used_if_it_supports_the_expression() -> None:
    for regex in (r"needle_\d+ = fooBar", "海风.{1,4}呢", r"(?P<a>x)$", r"[\w.-]+@", "(?i)foo"):
        assert line_pattern(regex).for_ripgrep is not None, regex
    for regex in (r"\pL", r"\x41", r"(?s)a.b", "(?i)É", r"\Qa.b\E"):
        assert line_pattern(regex).for_ripgrep is None, regex


def test_an_invalid_regex_is_reported_and_so_is_one_with_a_line_break(project: Any) -> None:
    write_files(project.root, a_txt="x")
    invalid = [
        "",
        "(",
        "(?<=a)b",
        r"(a)\1",
        "a{1,100000}",
        "a" * 1001,
        "a\nb",
        r"a\nb",
        "[",
        "*a",
        "\\",
    ]
    for regex in invalid:
        with pytest.raises(BadArguments) as caught:
            search_matches(project, regex)
        assert caught.value.hint
    assert search_matches(project, r"[^\n]") == [("a.txt", 1, "x")]


def test_matches_are_sorted_by_path_and_line_and_cut_at_the_cap(
    project: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(file_search, "_FIRST_FILES", 2)
    for folder in ("b", "a", "a-", "a.b"):
        for name in ("2", "10", "1"):
            write_files(project.root, **{f"{folder}__{name}": "x\nno\nx x\n"})
    write_files(project.root, **{"a_txt": "x", "b_txt": "x"})
    everything = search_matches(project, "x")
    assert everything == sorted(everything)
    assert len(everything) == 26
    for cap in (1, 2, 3, 7, 25, 26):
        assert search_matches(project, "x", maxMatches=cap) == everything[:cap]


def test_binary_large_forbidden_and_linked_files_are_not_searched(tmp_path: Path) -> None:
    project = workspace_at(tmp_path, max_read_bytes=100)
    write_files(
        project.root, ok_txt="word", big_txt="word" * 26, bin_dat=b"word\0", late_dat=b"word\n\0"
    )
    write_files(project.root, **{"_git__config": "word", "_env": "word", "_ENV_x": "word"})
    (project.root / "sub/node_modules").mkdir(parents=True)
    (project.root / "sub/node_modules/x").write_text("word")
    (tmp_path / "out.txt").write_text("word")
    (project.root / "link.txt").symlink_to(tmp_path / "out.txt")
    assert search_matches(project, "word") == [("ok.txt", 1, "word")]
    for path in (".git", "link.txt", "sub/../sub", "/"):
        with pytest.raises(PathDenied):
            search_matches(project, "word", path=path)


def test_a_file_pattern_without_a_slash_matches_names_at_any_depth(project: Any) -> None:
    write_files(project.root, a_txt="x", d__b_txt="x", d__e__c_txt="x", d__d_md="x")
    assert [path for path, *_ in search_matches(project, "x", filePattern="*.txt")] == [
        "a.txt",
        "d/b.txt",
        "d/e/c.txt",
    ]
    assert [path for path, *_ in search_matches(project, "x", filePattern="d/*.{txt,md}")] == [
        "d/b.txt",
        "d/d.md",
    ]
    assert [path for path, *_ in search_matches(project, "x", path="d", filePattern="**/c*")] == [
        "d/e/c.txt"
    ]
    assert search_matches(project, "x", path="d/b.txt") == [("d/b.txt", 1, "x")]
    for pattern in ("../*", "/etc/*", "d/../../*", "C:/*"):
        with pytest.raises(PathDenied):
            search_matches(project, "x", filePattern=pattern)
    for pattern in ("", "*" * 2000, "{a,b}" * 9, "a\0"):
        with pytest.raises(BadArguments):
            search_matches(project, "x", filePattern=pattern)


def test_a_preview_is_short_and_shows_the_match(project: Any) -> None:
    write_files(
        project.root,
        a_txt="\ufeffstart\r\n" + "雪" * 5000 + "needle" + "é" * 5000 + "\nneedle" + "x" * 500,
    )
    start, middle, long = search_matches(project, "needle|^start$")
    assert start[2] == "start"  # without the BOM and the end of its line
    for _, line, preview in (middle, long):
        assert "needle" in preview, line
        assert len(preview) <= 200
        assert "\ufffd" not in preview
        assert preview.endswith("…")


def test_a_search_that_takes_too_long_is_stopped(project: Any, tmp_path: Path) -> None:
    write_files(project.root, **{f"f{n}": "x" for n in range(50)})
    with Sandbox(project.root, ()) as sandbox, pytest.raises(WorkspaceTimeout):
        file_search.search_below(
            sandbox, file_search.SearchQuery(".", line_pattern("x"), None, 9, 9, 0.0)
        )


@needs_ripgrep
def test_a_ripgrep_failure_does_not_change_the_result(project: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(file_search, "_FIRST_FILES", 1)
    write_files(project.root, a__a="no", b__b="word", c__c="word")
    monkeypatch.setattr("runners.workspace.search.ripgrep.find_ripgrep", lambda: "/nonexistent/rg")
    assert [path for path, *_ in search_matches(project, "word")] == ["b/b", "c/c"]


def test_a_preview_matches_its_line(project: Any) -> None:
    write_files(project.root, a_txt="one\n  two\t\nthree")
    assert [(n, re.sub(r"\s", "", p)) for _, n, p in search_matches(project, "t")] == [
        (2, "two"),
        (3, "three"),
    ]
