"""Follow a run by its events and show pages as they are read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from decisions.identity.principals import Principal
from runs.queries.runs import list_events

POLL_S = 0.15
PAGE_ENDS = frozenset({"step.succeeded", "step.failed"})


class DemoTimeout(Exception):
    """The run has not ended in the time that the first run has."""


class Display(Protocol):
    """Where the reading is shown while it goes on."""

    def page(self, path: str, outcome: str) -> None:
        """Show a page that is done; `outcome` is its time or its error code."""

    def note(self, text: str) -> None:
        """Show something else that happened."""

    def begin(self) -> None:
        """Show that a worker has the run in hand."""


@dataclass(slots=True)
class ReadingProgress:
    """What the events of the run told so far: how long each page took, in milliseconds by step."""

    urls: Sequence[str]
    milliseconds: dict[int, int] = field(default_factory=dict)

    def hear(self, event: dict[str, Any], display: Display) -> None:
        """Take one event in and show it if it is of interest to a person."""
        data = event["data"]
        if event["type"] == "run.started":
            display.begin()
        if event["type"] == "run.resumed" and data.get("attempt", 1) > 1:
            display.note("Another worker goes on where the last one stopped.")
        if not isinstance(data.get("step"), int) or data["step"] >= len(self.urls):
            return
        path = path_of(self.urls[data["step"]])
        if event["type"] == "step.retrying":
            display.note(f"{path} is tried again ({data.get('errorCode', 'it failed')}).")
        elif event["type"] in PAGE_ENDS:
            if "durationMs" in data:
                self.milliseconds[data["step"]] = round(data["durationMs"])
            display.page(path, data.get("errorCode") or f"{data.get('durationMs', 0):.0f} ms")


def path_of(url: str) -> str:
    """Return what tells one page of the site from another."""
    return urlsplit(url).path or "/"


def events_of(principal: Principal, run_id: str, *, timeout_s: float) -> Iterator[dict[str, Any]]:
    """Yield the run's events in order until the one that ends it.

    Raises:
        OutOfTime: `timeout_s` seconds have passed without an end.
    """
    until = time.monotonic() + timeout_s
    after = 0
    while True:
        page = list_events(principal=principal, run_id=run_id, after=after)
        yield from page["events"]
        after = page["lastSeq"]
        if page["terminal"]:
            return
        if time.monotonic() > until:
            raise DemoTimeout
        if not page["events"]:
            time.sleep(POLL_S)


@contextmanager
def display_on(console: Console, total: int) -> Iterator[Display]:
    """Give a display that suits the console: a bar on a terminal, else a plain line a page."""
    if not console.is_terminal:
        yield _Lines(console, total)
        return
    columns = (
        TextColumn("  Reading"),
        BarColumn(bar_width=32),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", style="dim", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bar(progress, total)


class _Bar:
    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task("waiting for the worker", total=total)

    def page(self, path: str, outcome: str) -> None:
        self._progress.update(self._task, advance=1, description=f"{path}  {outcome}")

    def note(self, text: str) -> None:
        self._progress.console.print(Text(f"  {text}", style="yellow"))

    def begin(self) -> None:
        self._progress.update(self._task, description="the browser opens the first pages")


class _Lines:
    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self._done = 0

    def page(self, path: str, outcome: str) -> None:
        self._done += 1
        self._console.print(Text(f"  {self._done:>2}/{self._total}  {path:<22} {outcome:>8}"))

    def note(self, text: str) -> None:
        self._console.print(Text(f"         {text}"))

    def begin(self) -> None:
        """Stay quiet: the first line comes soon enough."""
