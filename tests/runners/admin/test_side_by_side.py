"""A side-by-side diff of two texts: changed lines with some context, and every invisible character
made visible."""

from __future__ import annotations

import pytest

from runners.admin.side_by_side import Side, rows_of, visible


def rows_as_text(old: str, new: str) -> list[str]:
    """Return the rows as short texts: kind, left number and text, right number and text."""

    def side(part: Side | None) -> str:
        return "" if part is None else f"{part.number}:{part.before}[{part.differs}]{part.after}"

    return [
        f"skip {row.skipped}"
        if row.kind == "skipped"
        else f"{row.kind} {side(row.left)} | {side(row.right)}"
        for row in rows_of(old, new)
    ]


def test_equal_texts_have_no_rows() -> None:
    assert rows_as_text("a\nb", "a\nb") == []


def test_a_changed_line_shows_its_changed_part() -> None:
    assert rows_as_text("changeBg: a.png -next;", "changeBg: bc.png -next;") == [
        "changed 1:changeBg: [a].png -next; | 1:changeBg: [bc].png -next;"
    ]


def test_removed_and_added_lines_have_their_own_rows() -> None:
    assert rows_as_text("a\nx\nb", "a\nb") == [
        "equal 1:a[] | 1:a[]",
        "removed 2:x[] | ",
        "equal 3:b[] | 2:b[]",
    ]
    assert rows_as_text("a\nb", "a\nb\nx")[-1] == "added  | 3:x[]"


def test_lines_far_from_a_change_are_omitted_and_counted() -> None:
    old = [str(number) for number in range(1, 31)]
    new = [*old[:9], "x", *old[10:19], *old[20:]]
    assert rows_as_text("\n".join(old), "\n".join(new)) == [
        "skip 6",
        *(f"equal {n}:{n}[] | {n}:{n}[]" for n in (7, 8, 9)),
        "changed 10:[10] | 10:[x]",
        *(f"equal {n}:{n}[] | {n}:{n}[]" for n in (11, 12, 13)),
        "skip 3",
        *(f"equal {n}:{n}[] | {n}:{n}[]" for n in (17, 18, 19)),
        "removed 20:20[] | ",
        *(f"equal {n}:{n}[] | {n - 1}:{n}[]" for n in (21, 22, 23)),
        "skip 7",
    ]


def test_a_single_line_is_shown_instead_of_omitted() -> None:
    assert rows_as_text("1\n2\n3\n4\nx", "1\n2\n3\n4\ny")[0] == "equal 1:1[] | 1:1[]"
    assert rows_as_text("0\n1\n2\n3\n4\nx", "0\n1\n2\n3\n4\ny")[0] == "skip 2"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("a\r", "a␍"),
        ("a\tb", "a\tb"),
        ("\x1b[31m", "\\u001b[31m"),
        ("a\u202eb", "a\\u202eb"),
        ("x" * 3000, "x" * 2000 + "…"),
        ("雪乃", "雪乃"),
    ],
)
def test_invisible_characters_are_made_visible(line: str, shown: str) -> None:
    assert visible(line) == shown
