"""The ordered log of a run: seq and progress come from the run's row lock (mechanisms 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db.models import F, QuerySet

from runs.models import Run, RunEvent
from runs.rows import not_before, update_returning
from runs.wakeups import announce


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event without its seq, which the log gives."""

    type: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Logged:
    """What the log wrote to: the run's place and the last seq it gave."""

    tenant_id: str
    workspace_id: str
    last_seq: int


def log_events(
    rows: QuerySet[Run],
    run_id: str,
    events: Sequence[NewEvent],
    values: Mapping[str, Any] | None = None,
) -> Logged | None:
    """Update the one run that `rows` guards and append its events, in the caller's transaction.

    The guard is the UPDATE's WHERE: None means that it held nothing, and then nothing was written.
    Listeners are woken after the commit.
    """
    now = datetime.now(UTC)
    changed = update_returning(
        rows.filter(id=run_id),
        {
            **(values or {}),
            "last_seq": F("last_seq") + len(events),
            "updated_at": not_before("updated_at", now),
        },
        ("tenant_id", "workspace_id", "last_seq"),
    )
    if not changed:
        return None
    logged = Logged(*changed[0])
    first = logged.last_seq - len(events) + 1
    RunEvent.objects.bulk_create(
        RunEvent(run_id=run_id, seq=seq, type=event.type, at=now, data=dict(event.data))
        for seq, event in enumerate(events, start=first)
    )
    announce(run_id, logged.last_seq)
    return logged
