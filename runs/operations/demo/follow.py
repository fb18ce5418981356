"""Follow the demo's run by its events, and show pages as they are read."""

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
    """The run did not end within the demo's timeout."""


class Display(Protocol):
    """Shows the progress of the run."""

    def page(self, path: str, outcome: str) -> None:
        """Show a finished page; `outcome` is its duration or its error code."""

    def note(self, text: str) -> None:
        """Show another event as text."""

    def start(self) -> None:
        """Show that a worker has started the run."""


@dataclass(slots=True)
class ReadingProgress:
    """The progress of the run, from its events.

    Attributes:
        milliseconds: how long each page took, by step.
    """

    urls: Sequence[str]
    milliseconds: dict[int, int] = field(default_factory=dict)

    def handle(self, event: dict[str, Any], display: Display) -> None:
        """Handle one event, and show it if it matters to the user."""
        data = event["data"]
        if event["type"] == "run.started":
            display.start()
        if event["type"] == "run.resumed" and data.get("attempt", 1) > 1:
            display.note("Another worker continues where the last one stopped.")
        if not isinstance(data.get("step"), int) or data["step"] >= len(self.urls):
            return
        path = path_of(self.urls[data["step"]])
        if event["type"] == "step.retrying":
            display.note(f"{path} is retried ({data.get('errorCode', 'it failed')}).")
        elif event["type"] in PAGE_ENDS:
            if "durationMs" in data:
                self.milliseconds[data["step"]] = round(data["durationMs"])
            display.page(path, data.get("errorCode") or f"{data.get('durationMs', 0):.0f} ms")


def path_of(url: str) -> str:
    """Return the path of a page of the site."""
    return urlsplit(url).path or "/"


def events_of(principal: Principal, run_id: str, *, timeout_s: float) -> Iterator[dict[str, Any]]:
    """Yield the run's events in order, up to the one that ends it.

    Raises:
        DemoTimeout: The run did not end within `timeout_s`.
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
    """Yield a display for the console: a progress bar on a terminal, else a line per page."""
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

    def start(self) -> None:
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

    def start(self) -> None:
        """Print nothing: the first page follows soon."""
