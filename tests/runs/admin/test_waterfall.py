"""Steps as bars on a time axis."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from runs.admin.runs.waits import Wait
from runs.admin.runs.waterfall import Waterfall, draw
from runs.models import RunStep

RUN_STARTED = datetime(2026, 1, 1, tzinfo=UTC)


def seconds_after_start(seconds: float | None) -> datetime | None:
    """Return the time this many seconds after the start of the run."""
    return None if seconds is None else RUN_STARTED + timedelta(seconds=seconds)


def step(
    start: float | None, end: float | None, name: str = "read", status: str = "succeeded"
) -> RunStep:
    """Return a step with start and end times in seconds after the start of the run."""
    return RunStep(
        name=name,
        index=0,
        status=status,
        started_at=seconds_after_start(start),
        ended_at=seconds_after_start(end),
    )


def draw_steps(
    *steps: RunStep,
    now: float = 100.0,
    ended: float | None = None,
    waits: Sequence[Wait] = (),
) -> Waterfall:
    """Draw the steps of a run that started at BEGAN."""
    until = RUN_STARTED + timedelta(seconds=now)
    return draw(
        steps,
        created_at=RUN_STARTED,
        began_at=RUN_STARTED,
        ended_at=seconds_after_start(ended),
        now=until,
        waits=waits,
    )


def test_a_bar_covers_the_time_of_its_step() -> None:
    first, second = draw_steps(step(0, 5), step(5, 10)).bars
    assert (first.left, first.width) == (0, 50)
    assert (second.left, second.width) == (50, 50)


def test_the_bar_of_a_running_step_ends_now() -> None:
    bar = draw_steps(step(0, None), now=2.5).bars[0]
    assert (bar.left, bar.width, bar.took) == (0, 100, "2.5 s")


def test_a_step_cut_off_by_the_end_of_its_run_is_shown_as_interrupted() -> None:
    steps = step(0, 5), step(5, None, status="started"), step(None, None, status="pending")
    _, interrupted, waiting = draw_steps(*steps, ended=10, now=900).bars
    assert (interrupted.left, interrupted.width, interrupted.status) == (50, 50, "interrupted")
    assert waiting.status == "not done"


def test_a_pending_step_has_no_bar() -> None:
    assert draw_steps(step(0, 1), step(None, None)).bars[1].left is None


def test_nothing_is_drawn_before_the_first_step_starts() -> None:
    assert draw_steps(step(None, None)).ticks == []


def test_a_step_reused_by_a_retry_has_no_bar_and_does_not_extend_the_axis() -> None:
    reused, executed = draw_steps(step(-900, -899), step(0, 1)).bars
    assert reused.is_reused
    assert reused.left is None
    assert (executed.left, executed.width) == (0, 100)


def test_a_clock_that_was_set_back_keeps_every_bar_on_the_axis() -> None:
    for bar in draw_steps(step(0, 4), step(8, 2), step(10, 10)).bars:
        assert bar.left is not None
        assert bar.width is not None
        assert bar.left >= 0
        assert bar.left + bar.width <= 100.01


def test_a_step_without_duration_has_a_visible_bar() -> None:
    bar = draw_steps(step(0, 100), step(100, 100)).bars[1]
    assert bar.width is not None
    assert bar.width > 0


def test_ticks_are_at_round_times() -> None:
    assert [tick.label for tick in draw_steps(step(0, 9)).ticks] == [
        "0 s",
        "2 s",
        "4 s",
        "6 s",
        "8 s",
    ]
    labels = [tick.label for tick in draw_steps(step(0, 600)).ticks]
    assert labels == ["0 s", "2 min", "4 min", "6 min", "8 min", "10 min"]


def test_a_later_page_starts_at_the_time_of_its_first_step() -> None:
    later = draw_steps(step(100, 101), step(101, 102))
    assert later.bars[0].left == 0
    assert later.ticks[0].label == "1:40 min"


def test_a_host_shared_by_most_names_is_displayed_once() -> None:
    shared = draw_steps(step(0, 1, "read http://h:1/a"), step(0, 1, "read http://h:1/b"))
    assert shared.host == "http://h:1"
    assert [bar.label for bar in shared.bars] == ["read /a", "read /b"]


def test_names_with_different_hosts_are_not_shortened() -> None:
    mixed = draw_steps(step(0, 1, "read http://h/a"), step(0, 1, "read http://i/a"))
    assert mixed.host == ""
    assert mixed.bars[0].label == "read http://h/a"


def test_a_name_with_another_host_is_not_shortened() -> None:
    names = ["read http://h:1/a", "read http://h:1/b", "read http://h:1", "read http://h:12/c"]
    labels = [bar.label for bar in draw_steps(*(step(0, 1, name) for name in names)).bars]
    assert labels == ["read /a", "read /b", "read /", "read http://h:12/c"]


def test_a_succeeded_step_with_a_failed_call_is_red_with_its_error_code() -> None:
    refused, done = step(0, 1), step(1, 2)
    refused.failed_call = "POLICY_DENIED"  # type: ignore[attr-defined]
    first, second = draw_steps(refused, done).bars
    assert (first.tone, first.title, first.status) == ("failed", "POLICY_DENIED", "succeeded")
    assert (second.tone, second.title) == ("succeeded", "")


def wait(start: float, end: float | None) -> Wait:
    """Return a wait for an answer, in seconds after the start of the run."""
    began = seconds_after_start(start)
    assert began is not None
    return Wait(began, seconds_after_start(end), "answer", "Which one?")


def test_a_wait_is_a_narrow_gap_that_leaves_the_steps_their_width() -> None:
    drawn = draw_steps(step(0, 4), step(104, 108), waits=[wait(4, 104)])
    first, second = drawn.bars
    [gap] = drawn.gaps
    assert (first.width, second.width) == (45.45, 45.45)
    assert (gap.left, gap.width, gap.took) == (45.45, 9.09, "1 min 40 s")


def test_the_time_of_a_step_is_that_which_it_worked() -> None:
    [bar] = draw_steps(step(0, 106), waits=[wait(2, 102)]).bars
    assert (bar.took, bar.left, bar.width) == ("6.0 s", 0, 100)


def test_the_bar_of_a_step_that_waits_ends_where_its_wait_began() -> None:
    drawn = draw_steps(step(0, None, status="pending"), waits=[wait(2, None)], now=500)
    [bar], [gap] = drawn.bars, drawn.gaps
    assert (bar.took, gap.took) == ("2.0 s", "8 min 18 s")
    assert bar.width == gap.left
    assert gap.left + gap.width == 100


def test_a_wait_is_a_row_between_the_steps_around_it() -> None:
    drawn = draw_steps(step(0, 2), step(9, 10), step(None, None), waits=[wait(2, 9)])
    assert [type(row).__name__ for row in drawn.rows] == ["Bar", "Gap", "Bar", "Bar"]


def test_ticks_count_the_time_that_the_run_worked() -> None:
    ticks = draw_steps(step(0, 3), step(63, 66), waits=[wait(3, 63)]).ticks
    assert [tick.label for tick in ticks][-1] == "6 s"
    assert ticks[-1].left == 100


def test_a_wait_outside_of_the_shown_steps_is_not_drawn() -> None:
    assert draw_steps(step(10, 12), waits=[wait(2, 8)]).gaps == []


def test_a_step_named_by_its_number_is_numbered_once() -> None:
    assert [
        bar.label for bar in draw_steps(step(0, 1, "1. bash.exec"), step(1, 2, "3. x")).bars
    ] == [
        "bash.exec",
        "3. x",
    ]
