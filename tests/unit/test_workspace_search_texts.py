"""Both engines find the same lines in any text, and return the same previews."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runners.workspace.errors import BadArguments
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.search import file_search, ripgrep
from runners.workspace.search.line_matching import Match, RequiredBytes, matches_at, matches_in
from runners.workspace.search.patterns import line_pattern

needs_ripgrep = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
LONG = b"x" * 70_000  # longer than ripgrep's read buffer
PIECES = [
    b"word",
    b"WORD",
    b" ",
    b"\n",
    b"\r\n",
    b"\r",
    b"\n\n",
    b"\t",
    b"\xef\xbb\xbf",
    b"\x0b",
    "海风真呢".encode(),
    "Kſßİé".encode(),
    "Straße".encode(),
    b"\xff",
    b"\xe9\xa0",
    b"\xed\xa0\x80",
    b"\xe0\x80\x80",
    b"\xf4\xbf\xbf\xbf",
    b"\xc0\x80",
    b"\xc3",
    b"-_9",
    "\u2028\u0085".encode(),
    LONG,
    b"\0",
]
REGEXES = [
    "word",
    "(?i)word",
    "(?i)k|s",
    "^",
    "$",
    "^$",
    "",
    "x*",
    "(word)?",
    "^.$",
    "^.{2}$",
    ".",
    "^[^x]+$",
    r"\s$",
    r"\s",
    r"^\S*$",
    r"\bword\b",
    r"\B",
    r"\W",
    "海.{1,3}呢",
    "[海-风]",
    "[^a-z]$",
    "word.word",
    r"[\s\S]{3}",
    "d$",
    "^w",
    "x{999}$",
    "(?i:WORD)$",
    "é",
    "\ufeff",
    "^\ufeff",
    r"[^\n]$",
    r"\t|_",
    "[[:space:]]",
    "(?:a|word)-",
    "-+_?9",
    "word$|^x",
]


def found(root: Path, regex: str) -> list[Match]:
    search = file_search.SearchQuery(
        ".", line_pattern(regex), None, 10_000, 1_000_000, time.monotonic() + 60
    )
    with Sandbox(root, ()) as box:
        return file_search.search_below(box, search)


def put_texts(root: Path, texts: list[bytes]) -> None:
    (root / "!").write_text("no")
    for number, text in enumerate(texts):
        (root / f"{number:02}").write_bytes(text)


def same_with_and_without(root: Path, regex: str, patch: pytest.MonkeyPatch) -> None:
    """Compare both engines, where ripgrep searches all files but the first."""
    patch.setattr(file_search, "_FIRST_FILES", 1)
    patch.setattr(file_search, "_MAX_SORTED_WALK", 0)
    with_it = found(root, regex)
    with pytest.MonkeyPatch.context() as without:
        without.setattr(ripgrep, "find_ripgrep", lambda: None)
        assert with_it == found(root, regex), regex


@needs_ripgrep
@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(PIECES), max_size=6).map(b"".join), max_size=4),
    st.sampled_from([regex for regex in REGEXES if regex]),
)
def test_any_text_gives_the_same_with_ripgrep_and_without(
    tmp_path_factory: pytest.TempPathFactory, texts: list[bytes], regex: str
) -> None:
    root = tmp_path_factory.mktemp("texts")
    put_texts(root, texts)
    with pytest.MonkeyPatch.context() as patch:
        same_with_and_without(root, regex, patch)


@needs_ripgrep
def test_every_piece_gives_the_same_for_every_expression(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [
        before + piece + after
        for piece in PIECES
        for before in (b"", b"a\n", b"word ")
        for after in (b"", b"\n", b"word\r\n", b"\nword")
    ]
    put_texts(tmp_path, [*texts, *([b"word\n" * many for many in (19, 20, 21, 500)])])
    for regex in filter(None, REGEXES):
        same_with_and_without(tmp_path, regex, monkeypatch)


@needs_ripgrep
def test_a_file_that_is_binary_near_its_end_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_texts(tmp_path, [b"word\n\0", b"word\n", b"word\n" + LONG + b"\0", b"word\n"])
    same_with_and_without(tmp_path, "word", monkeypatch)
    assert [path for path, *_ in found(tmp_path, "word")] == ["01", "03"]


@needs_ripgrep
def test_a_name_with_a_line_break_is_searched_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_texts(tmp_path, [b"word"])
    (tmp_path / "a\nb").mkdir()
    (tmp_path / "a\nb/c\n").write_text("word")
    same_with_and_without(tmp_path, "word", monkeypatch)
    assert [path for path, *_ in found(tmp_path, "word")] == ["00", "a\nb/c\n"]


@pytest.mark.parametrize("bad", [b"\xed\xa0\x80", b"\xe0\x80\x80", b"\xf4\xbf\xbf\xbf", b"\xff"])
def test_invalid_bytes_match_nothing(bad: bytes) -> None:
    for regex in ("^.$", "^[^x]$", r"^\W+$", "[\x80-\U0010ffff]", r"\A.\z"):
        assert matches_in("a", bad + b"\n" + bad, line_pattern(regex), 9) == [], regex
    assert [one.line for one in matches_in("a", bad + b"ab\n", line_pattern("a.$"), 9)] == [1]


@given(st.lists(st.sampled_from(PIECES[:-1]), max_size=6).map(b"".join), st.sampled_from(REGEXES))
def test_a_text_without_the_required_parts_of_a_match_has_no_match(text: bytes, regex: str) -> None:
    try:
        pattern = line_pattern(regex)
    except BadArguments:
        assert not regex
        return
    if not RequiredBytes(pattern).all_in(text):
        assert matches_in("a", text, pattern, 9) == []


def test_only_parts_of_every_match_are_required() -> None:
    for regex, needed in [
        (r"needle_\d+ = fooBar", "nedl_ =foBar"),
        ("海风.{1,4}呢", "海风呢"),
        ("a(bc|d)e", "ae"),
        ("ab?c*d+e{0,2}f", "af"),
        ("a|b", ""),
        ("(?i)ab", ""),
        ("(?:a(?:b)c)d", "d"),
        (r"\.\*[xy]z$", ".*z"),
        (r"\x41b", ""),
        (r"\Qab\E", ""),
        (r"a\tb", "ab"),
        ("^$", ""),
        ("(?P<n>a)b", "b"),
        (r"\(a|b\)", ""),
        ("a{2}b", "b"),
        ("a{b", "{b"),
        ("[|]a", "a"),
        (r"a\|b", "a|b"),
        ("(a)?(?:b)+c", "c"),
        ("(?-s)a", ""),
        ("()a", "a"),
    ]:
        assert set(line_pattern(regex).required_bytes) == set(needed.encode()), regex


@given(st.lists(st.sampled_from([b"needle_1", b"_", b"n", b"needle_ = x"]), max_size=20))
def test_a_text_has_the_required_bytes_only_if_it_has_all_of_them(texts: list[bytes]) -> None:
    needed = RequiredBytes(line_pattern(r"needle_\d"))
    for text in texts:
        assert needed.all_in(text) == (not set(b"needle_") - set(text))


@given(
    st.lists(st.sampled_from(["word", "", "x word", "海风"]), max_size=5), st.booleans(), st.data()
)
def test_reported_lines_are_matched_as_in_the_whole_text(
    lines: list[str], execute_run: bool, data: st.DataObject
) -> None:
    text = "\n".join(lines).encode() + (b"\n" if execute_run else b"")
    begins = [0, *(one.end() for one in re.finditer(b"\n", text) if one.end() < len(text))]
    told = sorted(data.draw(st.sets(st.sampled_from(begins), min_size=1)))
    for regex in ("word", "^$", "^.", "海"):
        whole = matches_in("a", text, line_pattern(regex), 99)
        kept = [one for one in whole if not text or begins[one.line - 1] in told]
        assert matches_at("a", text, line_pattern(regex), told, 99) == kept
