"""Edit distances equal those of the full table, and the nearest name has the smallest distance."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runners.workspace.webgal.nearest import MAX_COMPARED_LENGTH, closest, edit_distance, fold_all

SHORT = st.text(alphabet="abcé海", max_size=12)


def table(one: str, other: str) -> int:
    """Compute the edit distance with the full table."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


@given(SHORT, SHORT)
def test_distances_equal_those_of_the_full_table(one: str, other: str) -> None:
    assert edit_distance(one, other) == edit_distance(other, one) == table(one, other)


@given(SHORT, st.lists(SHORT, max_size=6), st.integers(0, 12))
def test_no_name_is_closer_than_the_nearest(name: str, others: list[str], at_most: int) -> None:
    near = closest(name, fold_all(others), max_edits=at_most)
    needed = [table(name, other) for other in others]
    if near is None:
        assert all(count > at_most for count in needed)
    else:
        assert (near[0] in others, near[1]) == (True, min(needed))


def test_case_and_composed_characters_make_no_difference() -> None:
    assert closest("BEACH.PNG", fold_all(["beach.png"])) == ("beach.png", 0)
    assert closest("cafe\N{COMBINING ACUTE ACCENT}", fold_all(["Café"])) == ("Café", 0)


def test_of_equally_close_names_the_first_is_returned() -> None:
    assert closest("ab", fold_all(["ac", "ad"])) == ("ac", 1)


def test_only_the_start_of_a_long_name_is_compared() -> None:
    assert closest(
        "a" * MAX_COMPARED_LENGTH + "b" * 900, fold_all(["a" * MAX_COMPARED_LENGTH])
    ) == ("a" * MAX_COMPARED_LENGTH, 0)
