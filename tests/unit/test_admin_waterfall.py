"""Steps as bars on a time axis."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from runs.admin.runs.waterfall import Waterfall, draw
from runs.models import RunStep

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float | None) -> datetime | None:
    """Return a moment so long after the run began."""
    return None if seconds is None else BEGAN + timedelta(seconds=seconds)


def step(
    start: float | None, end: float | None, name: str = "read", status: str = "succeeded"
) -> RunStep:
    """Return a step that started and ended so many seconds after the run began."""
    return RunStep(name=name, index=0, status=status, started_at=at(start), ended_at=at(end))


def drawn(*steps: RunStep, now: float = 100.0, ended: float | None = None) -> Waterfall:
    """Draw the steps of a run that began at BEGAN."""
    until = BEGAN + timedelta(seconds=now)
    return draw(steps, created_at=BEGAN, began_at=BEGAN, ended_at=at(ended), now=until)


def test_bars_lie_where_their_time_lies() -> None:
    first, second = drawn(step(0, 5), step(5, 10)).bars
    assert (first.left, first.width) == (0, 50)
    assert (second.left, second.width) == (50, 50)


def test_a_step_under_way_reaches_to_now() -> None:
    bar = drawn(step(0, None), now=2.5).bars[0]
    assert (bar.left, bar.width, bar.took) == (0, 100, "2.5 s")


def test_what_was_under_way_when_the_run_ended_reaches_to_its_end_and_says_so() -> None:
    steps = step(0, 5), step(5, None, status="started"), step(None, None, status="pending")
    _, cut, waiting = drawn(*steps, ended=10, now=900).bars
    assert (cut.left, cut.width, cut.status) == (50, 50, "interrupted")
    assert waiting.status == "not done"


def test_a_pending_step_has_no_bar() -> None:
    assert drawn(step(0, 1), step(None, None)).bars[1].left is None


def test_nothing_is_drawn_before_anything_started() -> None:
    assert drawn(step(None, None)).ticks == []


def test_a_step_that_a_retry_took_over_has_no_bar_and_does_not_stretch_the_axis() -> None:
    taken, own = drawn(step(-900, -899), step(0, 1)).bars
    assert taken.is_reused
    assert taken.left is None
    assert (own.left, own.width) == (0, 100)


def test_a_clock_that_was_set_back_keeps_every_bar_on_the_axis() -> None:
    for bar in drawn(step(0, 4), step(8, 2), step(10, 10)).bars:
        assert bar.left is not None
        assert bar.width is not None
        assert bar.left >= 0
        assert bar.left + bar.width <= 100.01


def test_an_instant_step_is_still_seen() -> None:
    bar = drawn(step(0, 100), step(100, 100)).bars[1]
    assert bar.width is not None
    assert bar.width > 0


def test_marks_stand_at_round_times() -> None:
    assert [tick.label for tick in drawn(step(0, 9)).ticks] == ["0 s", "2 s", "4 s", "6 s", "8 s"]
    labels = [tick.label for tick in drawn(step(0, 600)).ticks]
    assert labels == ["0 s", "2 min", "4 min", "6 min", "8 min", "10 min"]


def test_a_later_page_of_steps_starts_where_its_steps_do() -> None:
    later = drawn(step(100, 101), step(101, 102))
    assert later.bars[0].left == 0
    assert later.ticks[0].label == "1:40 min"


def test_a_host_that_most_names_share_is_told_once() -> None:
    shared = drawn(step(0, 1, "read http://h:1/a"), step(0, 1, "read http://h:1/b"))
    assert shared.host == "http://h:1"
    assert [bar.label for bar in shared.bars] == ["read /a", "read /b"]


def test_names_of_different_hosts_stay_whole() -> None:
    mixed = drawn(step(0, 1, "read http://h/a"), step(0, 1, "read http://i/a"))
    assert mixed.host == ""
    assert mixed.bars[0].label == "read http://h/a"


def test_a_name_of_another_host_stays_whole_among_those_of_the_usual_one() -> None:
    names = ["read http://h:1/a", "read http://h:1/b", "read http://h:1", "read http://h:12/c"]
    labels = [bar.label for bar in drawn(*(step(0, 1, name) for name in names)).bars]
    assert labels == ["read /a", "read /b", "read /", "read http://h:12/c"]


def test_a_step_whose_call_failed_without_failing_it_is_red_and_tells_the_code() -> None:
    refused, done = step(0, 1), step(1, 2)
    refused.failed_call = "POLICY_DENIED"  # type: ignore[attr-defined]
    first, second = drawn(refused, done).bars
    assert (first.tone, first.title, first.status) == ("failed", "POLICY_DENIED", "succeeded")
    assert (second.tone, second.title) == ("succeeded", "")
