"""The timeout of a tool that opens a browser starts when the browser is ready."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from playwright.async_api import Browser

from runners.actions.parameters import TaskStart
from runners.browser.actions.task_start import task_start
from runners.browser.errors import browser_lost
from runners.browser.session.session import OpenBrowserSession
from runners.invocation.invoke import invoke
from runners.tools.base import ToolCall, ToolContext, ToolResult

START_SECONDS, TOOL_MS = 1.0, 300


class SlowBrowser:
    """A browser that starts slowly, and counts its starts."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails, self.starts = fails, 0

    async def __call__(self) -> Browser:
        """Start."""
        await asyncio.sleep(START_SECONDS)
        self.starts += 1
        if self.fails:
            raise browser_lost()
        return None  # type: ignore[return-value]  # unused here


def call(
    monkeypatch: pytest.MonkeyPatch, browser: SlowBrowser, *, seconds: float = 60.0
) -> ToolResult:
    """Call a tool that returns at once and whose timeout is shorter than the browser's start."""

    async def function(args: Any, ctx: ToolContext) -> Mapping[str, Any]:
        assert isinstance(args, TaskStart)
        return {"startedAfter": browser.starts}

    async def no_artifact(data: bytes, *, name: str, mime_type: str, kind: str = "file") -> str:
        return "art_none"

    async def work() -> ToolResult:
        session = OpenBrowserSession(browser, run_id="run_test", trust="local")
        context = ToolContext(
            run_id="run_test",
            trust="local",
            deadline=time.monotonic() + seconds,
            save_artifact=no_artifact,
            emit=lambda type_, data: None,
            browser=session,
        )
        result = await invoke(ToolCall("task_start", {}), context)
        while browser.starts == 0:  # also after its caller has given up
            await asyncio.sleep(0.01)
        return result

    quick = replace(task_start, function=function, timeout_ms=TOOL_MS)
    monkeypatch.setattr("runners.invocation.invoke.get_tool", lambda name: quick)
    return asyncio.run(asyncio.wait_for(work(), 60))


def test_a_slow_browser_start_does_not_count_against_the_tools_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert call(monkeypatch, SlowBrowser()).output == {"startedAfter": 1}


def test_a_browser_that_does_not_start_fails_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = call(monkeypatch, SlowBrowser(fails=True)).error or {}
    assert error["errorCode"] == "PAGE_CRASHED"


def test_a_browser_that_is_too_late_for_its_call_continues_to_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = call(monkeypatch, SlowBrowser(), seconds=0.2).error or {}
    assert error["message"] == "task_start was not started: no time was left for it."
