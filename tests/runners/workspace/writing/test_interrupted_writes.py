"""A write that times out or loses its caller reports its real outcome. A preview that the caller
never received does not permit a write.
"""

from __future__ import annotations

import asyncio
import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runners.invocation.invoke import invoke, raise_if_interrupted
from runners.tools import registry
from runners.tools.base import ToolCall, ToolResult
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.writing import line_diff, write_text
from tests.support.workspace.project import Project

LONG_S = 60.0
WRITE = {"path": "a.txt", "content": "two"}
REPLACE = ToolCall("replace_in_file", {"path": "a.txt", "find": "one", "replace": "two"})


PREVIEW = ToolCall("write_to_file", {"path": "a.txt", "content": "two", "dryRun": True})


class SlowDisk:
    """Writes a file at once, but returns only when the test allows it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written, self.may_return = threading.Event(), threading.Event()
        original = Sandbox.replace

        def replace(*args: Any, **kwargs: Any) -> None:
            original(*args, **kwargs)
            self.written.set()
            assert self.may_return.wait(LONG_S)

        monkeypatch.setattr(Sandbox, "replace", replace)


class SlowDiff:
    """Computes a diff only when the test allows it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started, self.may_end = threading.Event(), threading.Event()
        original = line_diff.diff_lines

        def diff_lines(*args: Any) -> Any:
            self.started.set()
            assert self.may_end.wait(LONG_S)
            return original(*args)

        monkeypatch.setattr(write_text, "diff_lines", diff_lines)


@pytest.fixture
def diff(monkeypatch: pytest.MonkeyPatch) -> SlowDiff:
    return SlowDiff(monkeypatch)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    return SlowDisk(monkeypatch)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "project").mkdir()
    created = Project(tmp_path / "project")
    created.write("a.txt", "one")
    return created


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose clock the test can advance."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s


def test_a_write_that_finishes_after_its_deadline_is_reported_as_done(
    project: Project, disk: SlowDisk
) -> None:
    clock = Clock()

    async def call() -> ToolResult:
        call_task = asyncio.ensure_future(invoke(REPLACE, project.context(seconds=LONG_S)))
        await asyncio.to_thread(disk.written.wait, LONG_S)
        clock.ahead_s = LONG_S  # past the deadline
        await asyncio.sleep(0.05)
        disk.may_return.set()
        return await call_task

    with asyncio.Runner(loop_factory=lambda: clock) as runner:
        result = runner.run(call())
    assert (result.ok, result.output) == (True, {"count": 1})
    assert (project.root / "a.txt").read_text() == "two"


def test_a_write_whose_caller_is_cancelled_is_awaited_and_reported_as_done(
    project: Project, disk: SlowDisk
) -> None:
    results: list[ToolResult] = []

    async def call() -> None:
        results.append(await invoke(REPLACE, project.context(seconds=LONG_S)))
        raise_if_interrupted()
        results.clear()  # not reached: this task was interrupted

    async def cancel_call() -> None:
        call_task = asyncio.ensure_future(call())
        await asyncio.to_thread(disk.written.wait, LONG_S)
        call_task.cancel()
        await asyncio.sleep(0.05)
        assert not call_task.done()
        disk.may_return.set()
        await asyncio.wait({call_task})
        assert call_task.cancelled()

    asyncio.run(cancel_call())
    assert [result.output for result in results] == [{"count": 1}]


def test_a_write_whose_deadline_passed_before_it_started_is_not_done(project: Project) -> None:
    result = asyncio.run(invoke(REPLACE, project.context(seconds=0.0)))
    assert not result.ok
    assert result.error is not None
    assert (result.error["errorCode"], result.error["details"]) == ("E_TIMEOUT", {"effect": "none"})
    assert (project.root / "a.txt").read_text() == "one"


@pytest.mark.parametrize(
    ("seconds", "at_least", "at_most"), [(30.0, 1, 30_000), (90.0, 60_000, 60_000)]
)
def test_a_preview_that_times_out_has_no_effect_and_reports_its_time_limit(
    project: Project, monkeypatch: pytest.MonkeyPatch, seconds: float, at_least: int, at_most: int
) -> None:
    clock, read_started, may_continue, original = (
        Clock(),
        threading.Event(),
        threading.Event(),
        Sandbox.read,
    )

    def read(*args: Any, **kwargs: Any) -> bytes:
        read_started.set()
        assert may_continue.wait(LONG_S)
        return original(*args, **kwargs)

    monkeypatch.setattr(Sandbox, "read", read)

    async def call() -> ToolResult:
        call_task = asyncio.ensure_future(invoke(PREVIEW, project.context(seconds)))
        await asyncio.to_thread(read_started.wait, LONG_S)
        clock.ahead_s = 90.0
        await asyncio.wait({call_task})
        may_continue.set()
        return call_task.result()

    with asyncio.Runner(loop_factory=lambda: clock) as runner:
        error = runner.run(call()).error or {}
    assert (error["errorCode"], error["details"]) == ("E_TIMEOUT", {"effect": "none"})
    (limit_ms,) = map(int, re.findall(r"within (\d+) ms", error["message"]))
    assert at_least <= limit_ms <= at_most


def test_a_call_ends_at_the_time_limit_of_its_tool(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, started, may_end, original = Clock(), threading.Event(), threading.Event(), Sandbox.read
    tool = registry.get_tool("read_file")
    assert tool is not None
    monkeypatch.setitem(registry._tools, tool.name, replace(tool, timeout_ms=5_000))

    def read(*args: Any, **kwargs: Any) -> bytes:
        started.set()
        assert may_end.wait(LONG_S)
        return original(*args, **kwargs)

    monkeypatch.setattr(Sandbox, "read", read)

    async def call() -> ToolResult:
        read_file = ToolCall("read_file", {"path": "a.txt"})
        call_task = asyncio.ensure_future(invoke(read_file, project.context(seconds=LONG_S)))
        await asyncio.to_thread(started.wait, LONG_S)
        clock.ahead_s = 6.0  # past the time limit, long before the deadline
        await asyncio.sleep(0.05)
        may_end.set()
        return await call_task

    with asyncio.Runner(loop_factory=lambda: clock) as runner:
        error = runner.run(call()).error or {}
    assert error["errorCode"] == "E_TIMEOUT"


def test_a_cancelled_read_ends_at_once(project: Project) -> None:
    async def interrupted() -> None:
        reading = ToolCall("search_files", {"path": ".", "regex": "one"})
        call_task = asyncio.ensure_future(invoke(reading, project.context(seconds=LONG_S)))
        await asyncio.sleep(0)
        call_task.cancel()
        await call_task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())


def test_a_preview_that_timed_out_does_not_permit_the_write(
    project: Project, diff: SlowDiff
) -> None:
    clock = Clock()

    async def call() -> ToolResult:
        call = ToolCall("write_to_file", WRITE | {"dryRun": True})
        call_task = asyncio.ensure_future(invoke(call, project.context(seconds=LONG_S)))
        await asyncio.to_thread(diff.started.wait, LONG_S)
        clock.ahead_s = LONG_S
        result = await call_task
        diff.may_end.set()
        return result

    with asyncio.Runner(loop_factory=lambda: clock) as runner:
        result = runner.run(call())
    assert result.error is not None
    assert result.error["errorCode"] == "E_TIMEOUT"
    assert project.code("write_to_file", **WRITE, dryRun=False) == "E_POLICY_VIOLATION"


def test_a_preview_whose_caller_was_cancelled_does_not_permit_the_write(
    project: Project, diff: SlowDiff
) -> None:
    async def cancel_call() -> None:
        call = ToolCall("write_to_file", WRITE | {"dryRun": True})
        call_task = asyncio.ensure_future(invoke(call, project.context(seconds=LONG_S)))
        await asyncio.to_thread(diff.started.wait, LONG_S)
        call_task.cancel()
        await asyncio.wait({call_task})
        diff.may_end.set()

    asyncio.run(cancel_call())  # returns after the thread has ended
    assert project.code("write_to_file", **WRITE, dryRun=False) == "E_POLICY_VIOLATION"
    project.output("write_to_file", **WRITE, dryRun=True)
    assert project.output("write_to_file", **WRITE, dryRun=False)["applied"]
