"""Whoever waits for a moment in a run's life looks then, and not at every event."""

from __future__ import annotations

import asyncio

from runs.streaming.watcher import Watcher

ENDS = frozenset({"run.succeeded"})


def news(watcher: Watcher, timeout_s: float = 0.0) -> int | None:
    return asyncio.run(watcher.news(timeout_s))


def test_other_events_are_passed_over() -> None:
    watcher = Watcher(ENDS)
    watcher.told(2, ["step.started", "step.progress"])
    assert news(watcher) is None
    watcher.told(3, ["step.succeeded", "run.succeeded"])
    assert news(watcher) == 3
    assert news(watcher) is None


def test_what_came_before_the_look_is_no_news() -> None:
    watcher = Watcher(ENDS)
    watcher.told(3, ["run.succeeded"])
    watcher.has(3)
    watcher.told(3, None)
    assert news(watcher) is None


def test_what_came_during_the_look_is_news() -> None:
    watcher = Watcher(ENDS)
    watcher.told(4, ["run.succeeded"])
    watcher.has(3)
    assert news(watcher) == 4


def test_rows_that_went_on_without_a_word_are_worth_a_look() -> None:
    watcher = Watcher(ENDS)
    watcher.has(3)
    watcher.told(4, None)
    assert news(watcher) == 4


def test_a_message_that_lied_hides_no_later_one() -> None:
    watcher = Watcher(ENDS)
    watcher.told(10**12, ["run.succeeded"])
    assert news(watcher) == 10**12
    watcher.has(3)
    watcher.told(4, ["run.succeeded"])
    assert news(watcher) == 4


def test_a_wait_is_woken_by_news_and_by_a_close() -> None:
    async def story() -> tuple[int | None, int | None]:
        watcher = Watcher(ENDS)
        asyncio.get_running_loop().call_later(0.05, watcher.told, 2, ["run.succeeded"])
        first = await watcher.news(60)
        asyncio.get_running_loop().call_later(0.05, watcher.close)
        return first, await watcher.news(60)

    assert asyncio.run(story()) == (2, None)


def test_a_run_that_is_gone_is_looked_at() -> None:
    watcher = Watcher(ENDS)
    watcher.has(7)
    watcher.look()
    assert news(watcher) is not None
