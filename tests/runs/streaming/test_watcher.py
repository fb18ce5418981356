"""A task that waits for a moment in a run's life checks the run then, and not at every event."""

from __future__ import annotations

import asyncio

from runs.streaming.watcher import Watcher

FINAL_EVENTS = frozenset({"run.succeeded"})


def wait_for_change(watcher: Watcher, timeout_s: float = 0.0) -> int | None:
    return asyncio.run(watcher.wait(timeout_s))


def test_other_events_are_ignored() -> None:
    watcher = Watcher(FINAL_EVENTS)
    watcher.notify(2, ["step.started", "step.progress"])
    assert wait_for_change(watcher) is None
    watcher.notify(3, ["step.succeeded", "run.succeeded"])
    assert wait_for_change(watcher) == 3
    assert wait_for_change(watcher) is None


def test_an_event_before_the_check_is_not_news() -> None:
    watcher = Watcher(FINAL_EVENTS)
    watcher.notify(3, ["run.succeeded"])
    watcher.mark_read(3)
    watcher.notify(3, None)
    assert wait_for_change(watcher) is None


def test_an_event_during_the_check_is_news() -> None:
    watcher = Watcher(FINAL_EVENTS)
    watcher.notify(4, ["run.succeeded"])
    watcher.mark_read(3)
    assert wait_for_change(watcher) == 4


def test_rows_that_changed_without_a_message_require_a_check() -> None:
    watcher = Watcher(FINAL_EVENTS)
    watcher.mark_read(3)
    watcher.notify(4, None)
    assert wait_for_change(watcher) == 4


def test_a_wrong_message_hides_no_later_one() -> None:
    watcher = Watcher(FINAL_EVENTS)
    watcher.notify(10**12, ["run.succeeded"])
    assert wait_for_change(watcher) == 10**12
    watcher.mark_read(3)
    watcher.notify(4, ["run.succeeded"])
    assert wait_for_change(watcher) == 4


def test_a_wait_ends_with_news_or_a_close() -> None:
    async def notify_then_close() -> tuple[int | None, int | None]:
        watcher = Watcher(FINAL_EVENTS)
        asyncio.get_running_loop().call_later(0.05, watcher.notify, 2, ["run.succeeded"])
        first = await watcher.wait(60)
        asyncio.get_running_loop().call_later(0.05, watcher.close)
        return first, await watcher.wait(60)

    assert asyncio.run(notify_then_close()) == (2, None)


def test_a_requested_check_is_news_without_an_event() -> None:
    watcher = Watcher(FINAL_EVENTS)
    watcher.mark_read(7)
    watcher.check_now()
    assert wait_for_change(watcher) is not None
