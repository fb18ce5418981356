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
FRAGMENTS = [
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


def search_matches(root: Path, regex: str) -> list[Match]:
    search = file_search.SearchQuery(
        ".", line_pattern(regex), None, 10_000, 1_000_000, time.monotonic() + 60
    )
    with Sandbox(root, ()) as box:
        return file_search.search_below(box, search)


def put_texts(root: Path, texts: list[bytes]) -> None:
    (root / "!").write_text("no")
    for number, text in enumerate(texts):
        (root / f"{number:02}").write_bytes(text)


def check_same_without_ripgrep(root: Path, regex: str, patch: pytest.MonkeyPatch) -> None:
    """Compare both engines, where ripgrep searches all files but the first."""
    patch.setattr(file_search, "_FIRST_FILES", 1)
    patch.setattr(file_search, "_MAX_SORTED_WALK", 0)
    with_ripgrep = search_matches(root, regex)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ripgrep, "find_ripgrep", lambda: None)
        assert with_ripgrep == search_matches(root, regex), regex


@pytest.mark.slow
@needs_ripgrep
@settings(max_examples=150)
@given(
    st.lists(st.lists(st.sampled_from(FRAGMENTS), max_size=6).map(b"".join), max_size=4),
    st.sampled_from([regex for regex in REGEXES if regex]),
)
def test_any_text_gives_the_same_with_ripgrep_and_without(
    tmp_path_factory: pytest.TempPathFactory, texts: list[bytes], regex: str
) -> None:
    root = tmp_path_factory.mktemp("texts")
    put_texts(root, texts)
    with pytest.MonkeyPatch.context() as patch:
        check_same_without_ripgrep(root, regex, patch)


@pytest.mark.slow
@needs_ripgrep
def test_every_piece_gives_the_same_for_every_expression(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [
        before + piece + after
        for piece in FRAGMENTS
        for before in (b"", b"a\n", b"word ")
        for after in (b"", b"\n", b"word\r\n", b"\nword")
    ]
    put_texts(tmp_path, [*texts, *([b"word\n" * count for count in (19, 20, 21, 500)])])
    for regex in filter(None, REGEXES):
        check_same_without_ripgrep(tmp_path, regex, monkeypatch)


@needs_ripgrep
def test_a_file_that_is_binary_near_its_end_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_texts(tmp_path, [b"word\n\0", b"word\n", b"word\n" + LONG + b"\0", b"word\n"])
    check_same_without_ripgrep(tmp_path, "word", monkeypatch)
    assert [path for path, *_ in search_matches(tmp_path, "word")] == ["01", "03"]


@needs_ripgrep
def test_a_name_with_a_line_break_is_searched_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_texts(tmp_path, [b"word"])
    (tmp_path / "a\nb").mkdir()
    (tmp_path / "a\nb/c\n").write_text("word")
    check_same_without_ripgrep(tmp_path, "word", monkeypatch)
    assert [path for path, *_ in search_matches(tmp_path, "word")] == ["00", "a\nb/c\n"]


@pytest.mark.parametrize(
    "invalid", [b"\xed\xa0\x80", b"\xe0\x80\x80", b"\xf4\xbf\xbf\xbf", b"\xff"]
)
def test_invalid_bytes_match_nothing(invalid: bytes) -> None:
    for regex in ("^.$", "^[^x]$", r"^\W+$", "[\x80-\U0010ffff]", r"\A.\z"):
        assert matches_in("a", invalid + b"\n" + invalid, line_pattern(regex), 9) == [], regex
    assert [match.line for match in matches_in("a", invalid + b"ab\n", line_pattern("a.$"), 9)] == [
        1
    ]


@given(
    st.lists(st.sampled_from(FRAGMENTS[:-1]), max_size=6).map(b"".join), st.sampled_from(REGEXES)
)
def test_a_text_without_the_required_parts_of_a_match_has_no_match(text: bytes, regex: str) -> None:
    try:
        pattern = line_pattern(regex)
    except BadArguments:
        assert not regex
        return
    if not RequiredBytes(pattern).all_in(text):
        assert matches_in("a", text, pattern, 9) == []


def test_only_parts_of_every_match_are_required() -> None:
    for regex, required in [
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
        assert set(line_pattern(regex).required_bytes) == set(required.encode()), regex


@given(st.lists(st.sampled_from([b"needle_1", b"_", b"n", b"needle_ = x"]), max_size=20))
def test_a_text_has_the_required_bytes_only_if_it_has_all_of_them(texts: list[bytes]) -> None:
    required = RequiredBytes(line_pattern(r"needle_\d"))
    for text in texts:
        assert required.all_in(text) == (not set(b"needle_") - set(text))


@given(
    st.lists(st.sampled_from(["word", "", "x word", "海风"]), max_size=5), st.booleans(), st.data()
)
def test_reported_lines_are_matched_as_in_the_whole_text(
    lines: list[str], has_final_newline: bool, data: st.DataObject
) -> None:
    text = "\n".join(lines).encode() + (b"\n" if has_final_newline else b"")
    line_starts = [
        0,
        *(match.end() for match in re.finditer(b"\n", text) if match.end() < len(text)),
    ]
    reported = sorted(data.draw(st.sets(st.sampled_from(line_starts), min_size=1)))
    for regex in ("word", "^$", "^.", "海"):
        all_matches = matches_in("a", text, line_pattern(regex), 99)
        expected = [
            match for match in all_matches if not text or line_starts[match.line - 1] in reported
        ]
        assert matches_at("a", text, line_pattern(regex), reported, 99) == expected
