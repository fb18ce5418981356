"""Edit distances equal those of the full table, and the nearest name has the smallest distance."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runners.workspace.webgal.nearest import MAX_COMPARED_LENGTH, closest, edit_distance, fold_all

SHORT = st.text(alphabet="abcé海", max_size=12)


def full_table_distance(first: str, second: str) -> int:
    """Compute the edit distance with the full table."""
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(second, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
    return row[-1]


@given(SHORT, SHORT)
def test_distances_equal_those_of_the_full_table(first: str, second: str) -> None:
    assert (
        edit_distance(first, second)
        == edit_distance(second, first)
        == full_table_distance(first, second)
    )


@given(SHORT, st.lists(SHORT, max_size=6), st.integers(0, 12))
def test_no_name_is_closer_than_the_nearest(name: str, others: list[str], at_most: int) -> None:
    nearest = closest(name, fold_all(others), max_edits=at_most)
    distances = [full_table_distance(name, second) for second in others]
    if nearest is None:
        assert all(count > at_most for count in distances)
    else:
        assert (nearest[0] in others, nearest[1]) == (True, min(distances))


def test_case_and_composed_characters_make_no_difference() -> None:
    assert closest("BEACH.PNG", fold_all(["beach.png"])) == ("beach.png", 0)
    assert closest("cafe\N{COMBINING ACUTE ACCENT}", fold_all(["Café"])) == ("Café", 0)


def test_of_equally_close_names_the_first_is_returned() -> None:
    assert closest("ab", fold_all(["ac", "ad"])) == ("ac", 1)


def test_only_the_start_of_a_long_name_is_compared() -> None:
    assert closest(
        "a" * MAX_COMPARED_LENGTH + "b" * 900, fold_all(["a" * MAX_COMPARED_LENGTH])
    ) == ("a" * MAX_COMPARED_LENGTH, 0)
