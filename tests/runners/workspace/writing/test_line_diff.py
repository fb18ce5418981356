"""The line diff: exactly reversible, in the seed's format, and bounded for difficult texts."""

from __future__ import annotations

import difflib
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.workspace.writing.line_diff import diff_lines
from tests.support.workspace.diffs import apply_diff, undo_diff

ENDINGS = st.sampled_from(["\n", "\r\n", "\r", "", "\n\n"])
WORDS = st.sampled_from(["", "a", "b", "c", "end;", "雪乃: 海风;", " ", "\u2028", "\x0c"])
TEXTS = st.lists(st.tuples(WORDS, ENDINGS), max_size=60).map(
    lambda parts: "".join(word + ending for word, ending in parts)
)


@given(old=TEXTS | st.text(max_size=200), new=TEXTS | st.text(max_size=200))
def test_a_diff_can_be_applied_and_reverted(old: str, new: str) -> None:
    hunks = diff_lines(old, new)
    assert apply_diff(old, hunks) == new
    assert undo_diff(new, hunks) == old
    assert (hunks == []) == (old == new)


@given(old=TEXTS, seed=st.integers(0, 10_000))
def test_hunks_of_an_edited_text_are_in_order_and_do_not_touch(old: str, seed: int) -> None:
    rng, lines = random.Random(seed), old.split("\n")
    for _ in range(rng.randint(0, 5)):
        at = rng.randint(0, len(lines))
        lines[at : at + rng.randint(0, 2)] = rng.choice([[], ["x"], ["a", "\r"], [""]])
    new = "\n".join(lines)
    hunks = diff_lines(old, new)
    assert (apply_diff(old, hunks), undo_diff(new, hunks)) == (new, old)
    for previous, following in pairwise(hunks):
        same_old = following["startOld"] - previous["startOld"] - previous["lenOld"]
        assert same_old == following["startNew"] - previous["startNew"] - previous["lenNew"] > 0


def test_hunks_have_the_format_of_the_seed() -> None:
    old = "\n".join([*map(str, range(1, 12)), "A", "B", "C", "end"])
    new = "\n".join([*map(str, range(1, 12)), "A", "B1", "B2", "C", "end"])
    assert diff_lines(old, new) == [
        {
            "startOld": 13,
            "lenOld": 1,
            "startNew": 13,
            "lenNew": 2,
            "linesOld": ["B"],
            "linesNew": ["B1", "B2"],
        },
    ]


@pytest.mark.parametrize(
    ("old", "new", "hunk"),
    [
        ("a\nc", "a\nb\nc", (2, 0, 2, 1)),  # before line 2
        ("a\n", "a\nb\n", (2, 0, 2, 1)),
        ("a", "a\n", (2, 0, 2, 1)),  # a last line break is one more, empty line
        ("a\nb", "b", (1, 1, 1, 0)),
        ("", "a\nb", (1, 1, 1, 2)),  # an empty text is one empty line
        ("a\nb", "", (1, 2, 1, 1)),
        ("a\r\nb", "a\nb", (1, 1, 1, 1)),
    ],
)
def test_small_changes_are_at_the_expected_lines(
    old: str, new: str, hunk: tuple[int, int, int, int]
) -> None:
    [found] = diff_lines(old, new)
    assert (found["startOld"], found["lenOld"], found["startNew"], found["lenNew"]) == hunk


def test_a_diff_of_another_text_is_not_applied() -> None:
    hunks = diff_lines("a\nb\nc", "a\nx\nc")
    for other_text in ("a\nB\nc", "a", "b\nc\na\n"):
        with pytest.raises(ValueError, match="differs from the diff"):
            apply_diff(other_text, hunks)
        with pytest.raises(ValueError, match="differs from the diff"):
            undo_diff(other_text, hunks)


def edit(lines: list[str], edits: int, rng: random.Random) -> list[str]:
    """Return the lines with this many of them changed, removed or added."""
    result = list(lines)
    for number in range(edits):
        at = rng.randint(0, len(result))
        result[at : at + rng.randint(0, 1)] = rng.choice([[], [f"new {number}"]])
    return result


@pytest.mark.parametrize("different", [3, 40, 100_000])
def test_the_diff_is_about_as_small_as_the_edit(different: int) -> None:
    rng = random.Random(different)
    old = [f"line {rng.randrange(different)}" for _ in range(4000)]
    hunks = diff_lines("\n".join(old), "\n".join(edit(old, 200, rng)))
    assert sum(each["lenOld"] + each["lenNew"] for each in hunks) <= 2 * 200


def test_the_diff_is_no_larger_than_the_slow_algorithms() -> None:
    rng = random.Random(7)
    for _ in range(200):
        old = [rng.choice("abcde") for _ in range(rng.randint(1, 20))]
        new = edit(old, rng.randint(1, 6), rng)
        ours = sum(h["lenOld"] + h["lenNew"] for h in diff_lines("\n".join(old), "\n".join(new)))
        slow = difflib.SequenceMatcher(None, old, new or [""], autojunk=False).get_opcodes()
        assert ours <= sum(i2 - i1 + j2 - j1 for tag, i1, i2, j1, j2 in slow if tag != "equal")


DIFFICULT_TEXTS = {
    "all alike": (["x"] * 30_000, ["x"] * 29_000),
    "alternating": (["a", "b"] * 15_000, ["b", "a", "a"] * 10_000),
    "upside down": ([str(n) for n in range(30_000)], [str(n) for n in range(30_000, 0, -1)]),
    "nothing in common": ([f"a{n}" for n in range(30_000)], [f"b{n}" for n in range(30_000)]),
    "few in common": (
        [f"a{n % 3}" for n in range(30_000)],
        [f"a{n * n % 7}" for n in range(30_000)],
    ),
}


@pytest.mark.parametrize("name", DIFFICULT_TEXTS)
def test_difficult_texts_take_bounded_work(name: str) -> None:
    # Each of these takes difflib minutes or hours: the time limit of the test suite is the
    # assertion.
    old, new = ("\n".join(lines) for lines in DIFFICULT_TEXTS[name])
    hunks = diff_lines(old, new)
    assert (apply_diff(old, hunks), undo_diff(new, hunks)) == (new, old)
