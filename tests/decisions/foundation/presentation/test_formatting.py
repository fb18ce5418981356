"""How the admin's pages display values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from decisions.foundation.presentation.formatting import (
    ago,
    duration,
    one_line,
    pretty_json,
    short_id,
    size,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "just now"), (5, "5 s ago"), (90, "1 min ago"), (7200, "2 h ago"), (-90, "in 1 min")],
)
def test_a_time_is_displayed_in_one_unit(seconds: int, text: str) -> None:
    assert ago(datetime.now(UTC) - timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(7, "7 ms"), (8300, "8.3 s"), (59_999, "1 min 00 s"), (125_000, "2 min 05 s")],
)
def test_a_duration_is_displayed_in_everyday_units(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text


def test_a_size_has_a_suitable_unit() -> None:
    assert [size(count) for count in (812, 65_536, 5_000_000)] == ["812 B", "64.0 KiB", "4.8 MiB"]


def test_a_short_id_keeps_its_end_because_ids_of_one_second_start_alike() -> None:
    assert short_id("run_01kb3x5j2e6s9w1z4b7f0h3k5m") == "run_…7f0h3k5m"
    assert short_id("local") == "local"


def test_displayed_json_has_no_secret() -> None:
    text = pretty_json({"url": "https://user:hunter2@host/", "note": "Bearer abcdefgh1234"})
    assert "hunter2" not in text
    assert "abcdefgh" not in text


def test_displayed_json_is_cut() -> None:
    assert "and 950 more" in pretty_json({"urls": ["u"] * 1000})
    assert len(pretty_json({"text": ["x" * 2000] * 40}, limit=500)) < 510


def test_a_small_object_is_displayed_on_one_line() -> None:
    assert one_line({"tool": "read_page", "step": 3, "none": None}) == "tool read_page · step 3"
