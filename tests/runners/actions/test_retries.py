"""Retries of failed browser actions, and the preparation of a page."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from runners.actions import retries
from runners.actions.errors import (
    ArtifactUploadFailed,
    CdpLost,
    CdpUnavailable,
    InvalidTaskTab,
    OwnPage,
    ReadabilityTooLarge,
    TaskTabClosed,
)
from runners.actions.page_preparation import prepare_page
from runners.actions.readability import is_inline
from runners.actions.retries import may_retry, with_retry
from runners.errors import NavigationTimeout, PageCrashed, ToolFailed
from runners.tools.base import ToolResult

TIMEOUT = NavigationTimeout("late")


class Script:
    """A fake action executor: returns the scripted answers of each action, in order."""

    def __init__(self, **answers: Sequence[ToolFailed | dict[str, Any]]) -> None:
        self._answers = {name: list(scripted) for name, scripted in answers.items()}
        self.calls: list[str] = []
        self.limits: list[int | None] = []
        self.pauses: list[float] = []

    async def act(
        self, name: str, args: Mapping[str, Any], /, *, timeout_ms: int | None = None
    ) -> ToolResult:
        """Return the next scripted answer, or {} if none is left."""
        self.calls.append(name)
        self.limits.append(timeout_ms)
        remaining = self._answers.get(name.removeprefix("browser_"), [])
        answer = remaining.pop(0) if remaining else {}
        if isinstance(answer, ToolFailed):
            return ToolResult(ok=False, error=answer.as_dict())
        return ToolResult(ok=True, output=answer)

    async def pause(self, seconds: float) -> None:
        """Record a pause."""
        self.pauses.append(seconds)

    def prepare(self) -> ToolResult:
        """Prepare a page."""
        with mock.patch("asyncio.sleep", self.pause):
            return asyncio.run(prepare_page(self.act, 7))

    def retry(self, name: str, **args: Any) -> ToolResult:
        """Run an action, with a retry where that is allowed."""
        with mock.patch("asyncio.sleep", self.pause):
            return asyncio.run(with_retry(self.act, name, args))


def test_a_retryable_failure_is_retried_once_after_a_second() -> None:
    script = Script(screenshot=[TIMEOUT, TIMEOUT, {"artifactId": "a"}])
    assert not script.retry("browser_screenshot", tabId=7).ok
    assert (script.calls, script.pauses) == (["browser_screenshot"] * 2, [1.0])


@pytest.mark.parametrize(
    ("seconds", "failed", "limits"),
    [
        (20.0, TIMEOUT, [None]),
        (18.5, TIMEOUT, [None]),
        (6.0, TIMEOUT, [None, 13_000]),
        (25.0, PageCrashed("x"), [None, None]),
    ],
)
def test_a_retry_fits_into_the_time_limit_of_the_action(
    seconds: float,
    failed: ToolFailed,
    limits: list[int | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script, clock = Script(task_start=[failed]), iter((100.0, 100.0 + seconds))
    monkeypatch.setattr(retries, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    assert script.retry("task_start").ok is (len(limits) == 2)
    assert script.limits == limits


@pytest.mark.parametrize(
    ("name", "args", "failed", "allowed"),
    [
        ("browser_click", {}, TIMEOUT, False),
        ("browser_click", {}, CdpUnavailable("x", details={"effect": "none"}), True),
        ("browser_click", {}, CdpLost("x", details={"effect": "unknown"}), False),
        ("browser_click", {}, NavigationTimeout("x", details={"effect": "unknown"}), False),
        ("browser_type", {"text": "a"}, TIMEOUT, True),
        ("browser_type", {"text": "a", "submit": True}, TIMEOUT, False),
        ("browser_dom_index", {}, InvalidTaskTab("x"), False),
        ("browser_screenshot", {}, ArtifactUploadFailed("x"), True),
        ("browser_readability_extract", {}, ReadabilityTooLarge("x"), False),
        ("task_start", {}, OwnPage("x"), False),
    ],
)
def test_only_safe_actions_with_retryable_failures_are_retried(
    name: str, args: dict[str, Any], failed: ToolFailed, allowed: bool
) -> None:
    assert may_retry(name, args, failed.as_dict()) is allowed


def test_a_prepared_page_has_a_screenshot_and_a_text() -> None:
    script = Script(screenshot=[{"artifactId": "a"}], readability_extract=[{"markdown": "m"}])
    assert script.prepare().output == {
        "screenshot": {"artifactId": "a"},
        "readability": {"markdown": "m"},
        "missing": [],
        "warnings": [],
    }
    assert script.pauses == []


def test_a_failed_part_is_retried_once_after_half_a_second_to_one_and_a_half() -> None:
    script = Script(screenshot=[TIMEOUT, {"artifactId": "a"}])
    output = script.prepare().output or {}
    assert output["missing"] == []
    assert script.calls.count("browser_screenshot") == 2
    assert script.calls.count("browser_readability_extract") == 1
    assert len(script.pauses) == 1
    assert 0.5 <= script.pauses[0] <= 1.5


@pytest.mark.parametrize("part", ["screenshot", "readability_extract"])
def test_a_page_with_only_one_part_is_prepared_with_a_warning(part: str) -> None:
    script = Script(**{part: [TIMEOUT, TIMEOUT]})
    output = script.prepare().output or {}
    assert output["missing"] == [part.removesuffix("_extract")]
    assert output["warnings"] == [f"No {part.removesuffix('_extract')} of the page: late"]
    assert script.calls.count(f"browser_{part}") == 2


def test_a_page_without_both_parts_fails_with_a_retryable_error() -> None:
    script = Script(screenshot=[TIMEOUT, TIMEOUT], readability_extract=[TIMEOUT, TIMEOUT])
    error = script.prepare().error or {}
    assert (error["errorCode"], error["retryable"]) == ("PAGE_PREP_FAILED", True)
    assert error["details"]["causes"] == {
        "screenshot": "NAVIGATION_TIMEOUT",
        "readability": "NAVIGATION_TIMEOUT",
    }
    assert len(script.calls) == 5
    assert len(script.pauses) == 1


def test_a_text_that_is_too_large_is_not_requested_again() -> None:
    script = Script(readability_extract=[ReadabilityTooLarge("too long")])
    assert (script.prepare().output or {})["missing"] == ["readability"]
    assert script.calls.count("browser_readability_extract") == 1
    assert script.pauses == []


def test_a_page_that_never_finishes_loading_is_used_as_it_is() -> None:
    script = Script(wait_for_loaded=[NavigationTimeout("not yet")])
    assert (script.prepare().output or {})["warnings"] == ["The page is used as it is: not yet"]


@pytest.mark.parametrize("part", ["wait_for_loaded", "screenshot", "readability_extract"])
@pytest.mark.parametrize("error", [TaskTabClosed, InvalidTaskTab, OwnPage])
def test_a_lost_page_ends_the_preparation(part: str, error: type[ToolFailed]) -> None:
    script = Script(**{part: [error("gone")]})
    assert (script.prepare().error or {})["errorCode"] == error.code
    assert script.calls[-1] == f"browser_{part}"
    assert script.pauses == []


def test_a_text_is_inline_below_a_threshold_and_refused_above_a_larger_one() -> None:
    assert is_inline(0)
    assert is_inline(262_143)
    assert not is_inline(262_144)
    assert not is_inline(2_097_152)
    with pytest.raises(ReadabilityTooLarge):
        is_inline(2_097_153)
