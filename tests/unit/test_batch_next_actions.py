"""What a batch offers to be called next."""

from __future__ import annotations

from typing import Any

from runs.task_templates.base import StepView
from runs.task_templates.builtin.batch_extract_pages import RESUBMIT_MAX_URLS, BatchExtractPages

LATE = {"errorCode": "NAVIGATION_TIMEOUT", "message": "late", "retryable": True}
WRONG = {"errorCode": "INVALID_PARAMETER", "message": "no such host", "retryable": False}


def step(index: int, error: dict[str, Any] | None = None, *, succeeded: bool = False) -> StepView:
    url = f"https://pages.example/{index}"
    return StepView(index, url, {"url": url}, succeeded, {} if succeeded else None, error)


def offered(*steps: StepView) -> list[dict[str, Any]]:
    urls = [one.input["url"] for one in steps]
    inputs = {"urls": urls, "concurrency": 2}
    return [dict(action) for action in BatchExtractPages().conclude(inputs, steps).next_actions]


def test_the_pages_that_another_try_may_read_are_offered_alone() -> None:
    [action] = offered(step(0, succeeded=True), step(1, LATE), step(2, WRONG), step(3))
    urls = ["https://pages.example/1", "https://pages.example/3"]
    assert action["args"]["inputs"] == {"urls": urls, "concurrency": 2}


def test_nothing_is_offered_where_all_were_read() -> None:
    assert offered(step(0, succeeded=True)) == []


def test_pages_that_no_try_can_read_are_not_offered_again() -> None:
    [action] = offered(step(0, WRONG))
    assert action["tool"] == "list_task_templates"


def test_a_list_that_would_fill_the_answer_is_not_offered() -> None:
    many = [step(index, LATE) for index in range(RESUBMIT_MAX_URLS + 1)]
    assert offered(step(99, succeeded=True), *many) == []


def test_the_reason_speaks_of_pages_that_were_read_only_where_there_are_any() -> None:
    [some] = offered(step(0, succeeded=True), step(1, LATE))
    [none] = offered(step(0, LATE), step(1))
    assert some["reason"] == "Read the 1 missing pages again; the others stay in this run's result."
    assert none["reason"] == "Read the 2 missing pages again."


def test_a_batch_sends_nothing_so_nobody_is_told_to_look_what_came_of_it() -> None:
    gone = {"errorCode": "NAVIGATION_FAILED", "message": "gone", "retryable": False}
    gone["details"] = {"url": "https://pages.example/0"}
    assert offered(step(0, gone)) == []
