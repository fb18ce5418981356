"""Direct calls that a worker carries: what their caller gets, and what the audit log says."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from decisions.principals import Principal
from runners import registry
from runs.tools import calls
from runs.tools.calls import Answered, AskedCall, call_tool
from runs.worker import WorkerPlace

pytest_plugins = ["tests.support.workspace_fixtures"]

LONG = "game/scene/long.txt"
LONG_S = 60.0


@pytest.fixture
def carried(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    """Have a worker carry calls of file tools, as if they needed a browser: none is here."""
    here = registry.get_tool

    def look(name: str) -> Any:
        found = here(name)
        return None if found is None else replace(found, uses_browser=True)

    monkeypatch.setattr(calls, "get_tool", look)


@pytest.fixture
def worker(principal: Principal) -> Iterator[None]:
    """A worker that carries what there is, on a thread of its own."""
    over = threading.Event()

    def work() -> None:
        place = WorkerPlace()
        try:
            while not over.wait(0.05):
                place.work()
        finally:
            place.close()
            connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    over.set()
    thread.join(LONG_S)


def made(principal: Principal, name: str, **more: Any) -> Answered:
    """Make a call and return what it answered."""
    args = more.pop("args", {})
    return asyncio.run(call_tool(principal=principal, asked=AskedCall(name, args, **more)))


@pytest.mark.usefixtures("carried", "worker")
@pytest.mark.parametrize("size", [10, 65_500, 400_000])
def test_the_caller_gets_the_whole_output(principal: Principal, project: Path, size: int) -> None:
    (project / LONG).write_text("x" * size)
    answered = made(principal, "read_file", args={"path": LONG})
    assert answered.run_id is not None
    assert answered.output["content"] == "x" * size
