"""The times in which a run waited for a person, read from its events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from decisions.foundation.presentation.formatting import shorten
from runs.events.types import EventType
from runs.models import Run, RunEvent

WAITS_SHOWN = 100  # of a run; each has two events


@dataclass(frozen=True, slots=True)
class Wait:
    """A time in which the run was suspended.

    Attributes:
        ended_at: when a worker continued the run, or the run ended; None while it waits.
        kind: `answer`, `confirmation` or `takeover`.
        text: the question, or the tool of the call that needs a confirmation.
        decision_id: the decision that a person confirms; empty for other waits.
    """

    began_at: datetime
    ended_at: datetime | None
    kind: str
    text: str = ""
    decision_id: str = ""

    def milliseconds(self, now: datetime) -> float:
        """Return how long it took, or has taken so far."""
        return max(0.0, ((self.ended_at or now) - self.began_at).total_seconds() * 1000)


def list_waits(run: Run) -> list[Wait]:
    """Return the waits of a run in order; one query."""
    if run.started_at is None:
        return []
    events = RunEvent.objects.filter(
        run_id=run.id, type__in=[EventType.RUN_WAITING, EventType.RUN_RESUMED]
    ).order_by("seq")
    waits: list[Wait] = []
    opened: RunEvent | None = None
    for event in events[: 2 * WAITS_SHOWN]:
        if event.type == EventType.RUN_WAITING:
            opened = opened or event
        elif opened is not None:
            waits.append(_wait(opened.at, event.at, opened.data))
            opened = None
    if opened is not None:
        waits.append(_wait(opened.at, run.ended_at, opened.data))
    return waits


def waited_ms(waits: Sequence[Wait], now: datetime) -> float:
    """Return the sum of the waits in milliseconds."""
    return sum(wait.milliseconds(now) for wait in waits)


def _wait(began_at: datetime, ended_at: datetime | None, data: dict[str, Any]) -> Wait:
    text = data.get("question") or data.get("tool") or ""
    return Wait(
        began_at,
        ended_at,
        kind=str(data.get("type", "")),
        text=shorten(str(text), 160),
        decision_id=str(data.get("decisionId") or ""),
    )
