"""Whoever waits for a moment in a run's life looks then, and not at every event."""

from __future__ import annotations

import asyncio

from runs.streaming.watcher import Watcher

ENDS = frozenset({"run.succeeded"})


def news(watcher: Watcher, timeout_s: float = 0.0) -> int | None:
    return asyncio.run(watcher.wait(timeout_s))


def test_other_events_are_passed_over() -> None:
    watcher = Watcher(ENDS)
    watcher.notify(2, ["step.started", "step.progress"])
    assert news(watcher) is None
    watcher.notify(3, ["step.succeeded", "run.succeeded"])
    assert news(watcher) == 3
    assert news(watcher) is None


def test_what_came_before_the_look_is_no_news() -> None:
    watcher = Watcher(ENDS)
    watcher.notify(3, ["run.succeeded"])
    watcher.mark_read(3)
    watcher.notify(3, None)
    assert news(watcher) is None


def test_what_came_during_the_look_is_news() -> None:
    watcher = Watcher(ENDS)
    watcher.notify(4, ["run.succeeded"])
    watcher.mark_read(3)
    assert news(watcher) == 4


def test_rows_that_went_on_without_a_word_are_worth_a_look() -> None:
    watcher = Watcher(ENDS)
    watcher.mark_read(3)
    watcher.notify(4, None)
    assert news(watcher) == 4


def test_a_message_that_lied_hides_no_later_one() -> None:
    watcher = Watcher(ENDS)
    watcher.notify(10**12, ["run.succeeded"])
    assert news(watcher) == 10**12
    watcher.mark_read(3)
    watcher.notify(4, ["run.succeeded"])
    assert news(watcher) == 4


def test_a_wait_is_woken_by_news_and_by_a_close() -> None:
    async def story() -> tuple[int | None, int | None]:
        watcher = Watcher(ENDS)
        asyncio.get_running_loop().call_later(0.05, watcher.notify, 2, ["run.succeeded"])
        first = await watcher.wait(60)
        asyncio.get_running_loop().call_later(0.05, watcher.close)
        return first, await watcher.wait(60)

    assert asyncio.run(story()) == (2, None)


def test_a_run_that_is_gone_is_looked_at() -> None:
    watcher = Watcher(ENDS)
    watcher.mark_read(7)
    watcher.check_now()
    assert news(watcher) is not None
