"""Reading parts of a result: no text is lost between answers, and no answer is too large."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decisions.foundation.errors import InvalidInput
from runs.queries.page_content import ContentSelection, Page, Section, pages_of, select_content


def page(*texts: str, url: str = "u") -> dict[str, Any]:
    sections = [{"heading": f"Part {n}", "level": 2, "text": text} for n, text in enumerate(texts)]
    return {"url": url, "title": "t", "success": True, "content": {"sections": sections}}


RESULT = {
    "summary": {"total": 3},
    "items": [
        page("one fish", "two fish"),
        {"url": "broken", "success": False, "content": None, "error": {}},
        page("red fish " * 400, "漢字", url="third"),
    ],
}


def read(value: Any, **options: Any) -> dict[str, Any]:
    return select_content(pages_of(value), ContentSelection(**options))


def follow_offsets(value: Any, **options: Any) -> list[dict[str, Any]]:
    """Follow nextOffset to the end and return every answer."""
    answers = [read(value, **options)]
    while "nextOffset" in answers[-1]:
        assert len(answers) < 10_000
        answers.append(read(value, **options, offset=answers[-1]["nextOffset"]))
    return answers


def texts_of(answers: list[dict[str, Any]]) -> dict[tuple[int, int], str]:
    """Join the pieces of each section and check that they follow each other without a gap."""
    joined: dict[tuple[int, int], str] = {}
    for answer in answers:
        for shown_page in answer["pages"]:
            for part in shown_page["sections"]:
                name = shown_page["item"], part["section"]
                assert part.get("start", 0) == len(joined.get(name, ""))
                joined[name] = joined.get(name, "") + part["text"]
    return joined


def test_a_small_result_comes_whole() -> None:
    answer = read(RESULT)
    assert set(answer) == {"totalPages", "pages"}
    assert answer["totalPages"] == 3
    assert [shown_page["url"] for shown_page in answer["pages"]] == ["u", "third"]


@given(
    st.lists(st.lists(st.text(max_size=400), max_size=5), max_size=6),
    st.integers(100, 900),
)
@settings(max_examples=100)
def test_following_the_offsets_gives_every_character_once(
    pages: list[list[str]], max_chars: int
) -> None:
    answers = follow_offsets({"items": [page(*texts) for texts in pages]}, max_chars=max_chars)
    expected = {(n, m): text for n, texts in enumerate(pages) for m, text in enumerate(texts)}
    assert texts_of(answers) == expected
    sizes = [sum(len(s["text"]) for p in a["pages"] for s in p["sections"]) for a in answers]
    assert max(sizes) <= max_chars


def test_an_outline_has_only_headings_and_lengths() -> None:
    answer = read(RESULT, outline=True)
    (part, _) = answer["pages"][1]["sections"]
    assert part == {"section": 0, "heading": "Part 0", "level": 2, "characters": 3600}


def test_an_outline_of_many_pages_continues_at_an_offset() -> None:
    many = {"items": [page("x" * 500, "y", url=f"u{n}") for n in range(200)]}
    answers = follow_offsets(many, outline=True, max_chars=1000)
    items = [shown_page["item"] for answer in answers for shown_page in answer["pages"]]
    assert sorted(set(items)) == list(range(200))
    assert max(len(orjson.dumps(answer)) for answer in answers) < 4000


@pytest.mark.parametrize(
    ("sections", "texts"),
    [(["part 1"], ["two fish", "漢字"]), ([1], ["two fish", "漢字"]), (["nothing"], [])],
)
def test_sections_are_named_by_heading_or_index(sections: list[Any], texts: list[str]) -> None:
    assert list(texts_of([read(RESULT, sections=sections)]).values()) == texts


def test_one_item_has_the_same_index_as_in_the_result() -> None:
    assert [shown_page["url"] for shown_page in read(RESULT, item=2)["pages"]] == ["third"]
    assert read(RESULT, item=1)["pages"] == []
    with pytest.raises(InvalidInput, match="items 0 to 2"):
        read(RESULT, item=3)


def test_grep_returns_the_text_around_each_match() -> None:
    answer = read(RESULT, grep="(?i)TWO f.sh")
    assert answer["matches"] == [{"item": 0, "heading": "Part 1", "text": "two fish"}]
    assert set(answer) == {"totalPages", "matches"}
    assert read("a fish", grep="fish")["matches"] == [{"item": 0, "section": 0, "text": "a fish"}]
    assert read(RESULT, grep="none") == {"totalPages": 3, "matches": []}


def test_grep_positions_count_characters_not_bytes() -> None:
    text = "漢" * 500 + "fish" + "字" * 500
    (match,) = read({"items": [page(text)]}, grep="fish", context=200)["matches"]
    assert match["text"] == "漢" * 100 + "fish" + "字" * 200


@pytest.mark.parametrize(
    ("matches", "context"), [(1, 400), (2, 120), (10, 120), (11, 60), (30, 60), (31, 20), (90, 20)]
)
def test_the_more_matches_there_are_the_less_text_is_around_them(
    matches: int, context: int
) -> None:
    text = ("x" * 500 + "fish") * matches + "x" * 500
    answer = read({"items": [page(text)]}, grep="fish", max_chars=30_000)
    part = "x" * (context // 2) + "fish" + "x" * context
    assert [match["text"] for match in answer["matches"]] == [part] * matches
    assert all(("heading" in match) is (matches <= 30) for match in answer["matches"])


@pytest.mark.parametrize("context", [0, 3])
def test_the_context_of_matches_can_be_requested(context: int) -> None:
    answer = read(RESULT, grep="o", item=0, context=context)
    assert [match["text"] for match in answer["matches"]] == (
        ["o", "o"] if context == 0 else ["one", "wo fi"]
    )


def test_a_context_needs_a_pattern() -> None:
    with pytest.raises(InvalidInput, match="context: give the pattern as grep"):
        read(RESULT, context=0)


def test_matches_continue_at_an_offset_and_none_is_repeated() -> None:
    numbers = {"items": [page(" ".join(f"<{n}>" for n in range(1000, 1400)))]}
    answers = follow_offsets(numbers, grep=r"<\d+>", context=1, max_chars=600)
    found = [match["text"] for answer in answers for match in answer["matches"]]
    assert len(answers) > 2
    assert found == [f"<{n}>" for n in range(1000, 1400)]


def test_sections_and_pattern_select_together() -> None:
    answer = read(RESULT, grep="fish", sections=["part 1"])
    assert [match["text"] for match in answer["matches"]] == ["two fish"]


def test_only_matches_returns_what_the_groups_match_by_item() -> None:
    answer = read(RESULT, grep=r"(?P<n>one|two|red) (fish)", only_matches=True)
    assert answer["found"]["0"] == [["one", "fish"], ["two", "fish"]]
    assert len(answer["found"]["2"]) == 400  # those near each other, too
    assert set(answer) == {"totalPages", "found"}
    assert read(RESULT, grep="two.*", only_matches=True)["found"] == {"0": ["two fish"]}


def test_only_matches_continues_at_an_offset() -> None:
    answers = follow_offsets(RESULT, grep="(red) fish", only_matches=True, max_chars=100)
    assert len(answers) > 10
    assert sum(len(answer["found"].get("2", ())) for answer in answers) == 400


def test_only_matches_needs_a_pattern() -> None:
    with pytest.raises(InvalidInput, match="give the pattern as grep"):
        read(RESULT, only_matches=True)


@pytest.mark.parametrize("pattern", ["(?=x)", "(", r"(a)\1", "a{2000}{2000}", "["])
def test_a_pattern_that_re2_does_not_support_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput, match=r"grep: .*RE2"):
        read(RESULT, grep=pattern)


@pytest.mark.parametrize("pattern", ["x*", "", "(a|a)*$", "(x+x+)+y"])
def test_no_pattern_takes_exponential_time(pattern: str) -> None:
    assert "nextOffset" not in read({"items": [page("x" * 50_000)]}, grep=pattern)


NAMES = st.sampled_from(["url", "success", "content", "sections", "heading", "level", "text"])
JSON = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner),
)


@pytest.mark.slow
@given(JSON)
@settings(max_examples=200)
def test_any_json_can_be_searched(value: Any) -> None:
    for found in pages_of(value):
        assert isinstance(found, Page)
        assert all(isinstance(section, Section) for section in found.sections)
    read(value, grep="a")
    read(value, outline=True)


def test_deep_json_is_searched() -> None:
    deep: Any = page("down here")
    for _ in range(1000):
        deep = [deep]
    assert read(deep)["totalPages"] == 1
