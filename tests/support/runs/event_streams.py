"""Readers of event streams for tests, and the events they receive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from decisions.identity.principals import Principal
from runs.lifecycle.changes import NewEvent, Transition
from runs.lifecycle.transition import apply
from runs.models import Run
from runs.streaming import sse


def tell(run_id: str, number: int = 1) -> None:
    """Write events as a worker would, in one transaction."""
    run = Run.objects.get(id=run_id)
    events = [NewEvent("tool.update", {"n": n}) for n in range(number)]
    assert apply(Transition(run, {"status": run.status}, events=events))


class Stream:
    """A reader of a run's event stream that records the sequence numbers it received."""

    def __init__(self, principal: Principal, run_id: str, after: int = 0) -> None:
        self.principal, self.run_id, self.after = principal, run_id, after
        self.got: list[int] = []
        self.comments = 0

    async def read(self, pause_s: float = 0.0) -> None:
        """Read until the end of the stream."""
        nothing = {"events": [], "lastSeq": self.after, "terminal": False}
        lines = sse._lines(self.principal, self.run_id, nothing)
        async for part in lines:
            ids = [line for line in part.split(b"\n") if line.startswith(b"id: ")]
            self.got += [int(line[4:]) for line in ids]
            self.comments += part.startswith(b":")
            await asyncio.sleep(pause_s)


@asynccontextmanager
async def reading(streams: list[Stream], pause_s: float = 0.0) -> AsyncIterator[None]:
    """Run the readers; after the block, give them time to end by themselves."""
    tasks = [asyncio.create_task(one.read(pause_s)) for one in streams]
    try:
        yield
        async with asyncio.timeout(60):
            await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(is_so: Callable[[], bool], within_s: float = 20) -> None:
    """Wait until the condition is true."""
    async with asyncio.timeout(within_s):
        while not is_so():
            await asyncio.sleep(0.01)


def all_at(streams: list[Stream], seq: int) -> Callable[[], bool]:
    """Return a condition: every stream has received this event last."""
    return lambda: all(one.got[-1:] == [seq] for one in streams)


def tell_each(run_ids: list[str], number: int) -> None:
    """Write events of several runs."""
    for run_id in run_ids:
        tell(run_id, number)
