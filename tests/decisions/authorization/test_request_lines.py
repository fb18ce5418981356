"""The line of a request: two requests that differ have lines that differ, in every list."""

from __future__ import annotations

from typing import Any

import pytest

from decisions.authorization.request_lines import request_line, request_lines
from decisions.models import Decision

pytestmark = pytest.mark.django_db
SQL = "DELETE FROM orders WHERE created_at < '2026-01-01' AND region IN ('eu', 'us') AND id < "


def requested(pk: int, tool: str = "bash.exec", **arguments: Any) -> Decision:
    return Decision(pk=pk, tool=tool, arguments=arguments, subject_digest=f"{pk:02d}" * 32)


@pytest.mark.parametrize("before", [0, 100, 1_000, 50_000])
def test_long_values_are_shown_where_they_differ(before: int) -> None:
    start = "x" * before + SQL
    rows = [requested(at, cmd=f"{start}{limit}{' --' * 200}") for at, limit in enumerate("012")]
    lines = request_lines(rows)
    assert len(set(lines.values())) == len(rows)
    assert all(f"id < {limit}" in lines[at] for at, limit in enumerate("012"))
    assert all(len(line) < 600 for line in lines.values())


def test_short_values_are_whole_and_what_a_person_looks_for_comes_first() -> None:
    element = '[5] button "Buy" submits'
    row = requested(1, "browser_click", tabId=7, clickId=5, element=element, page="Shop, https://s")
    assert request_line(row) == (
        'element [5] button "Buy" submits · page Shop, https://s · tabId 7 · clickId 5'
    )


def test_what_was_cut_or_masked_has_a_sign_of_the_whole_call() -> None:
    assert request_line(requested(1, cmd="y" * 500)).endswith("#01010101")
    assert request_line(requested(2, password="***")).endswith("#02020202")
    assert "#" not in request_line(requested(3, cmd="short"))


def test_each_character_of_a_line_can_be_seen() -> None:
    line = request_line(requested(1, cmd="echo a\nrm \u202eb"))
    assert "\n" not in line
    assert "U+202E" in line


def test_a_call_with_many_values_has_a_sign() -> None:
    line = request_line(requested(1, items=list(range(100))))
    assert "items[39] 39" in line
    assert "items[40]" not in line
    assert line.endswith("#01010101")
