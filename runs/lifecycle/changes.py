"""The vocabulary of change: what a transition of a run can hold. `runs.lifecycle.transition`
writes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from artifacts.services import StoredBlob
from decisions.audit.record import AuditEvent
from runs.lifecycle.call_records import CallRecord
from runs.lifecycle.in_flight_calls import CallStart
from runs.models import Run, RunStep, StepStatus


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event without its seq, which the run's row lock gives (mechanisms 4)."""

    type: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plus:
    """A column's own value and this much more."""

    amount: int


@dataclass(frozen=True, slots=True)
class StepChange:
    """A step's next line in the journal.

    Attributes:
        paused: of a step that is pending again because a person has to be asked first.
        events: what the change tells listeners, in order.
        calls: those that the step made, for their audit rows.
        new: the row of a step that the run did not have yet; it is inserted as the line says.
        opens: of a step that starts: the call that begins with it. One in a transition at most.
    """

    index: int
    status: StepStatus
    events: Sequence[NewEvent]
    output: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    blobs: Sequence[StoredBlob] = ()
    calls: Sequence[CallRecord] = ()
    paused: Mapping[str, Any] | None = None
    new: RunStep | None = None
    opens: CallStart | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """What to write about one run.

    Attributes:
        run: the run; only its id, tenant and workspace are read.
        guard: columns and the values they must have; without all of them nothing is written.
        values: columns to set, to a value or to `Plus`.
        steps: journal lines, written by `worker_id` under `epoch`.
        blobs: kept bytes that get their rows, each with the step it came from.
        deeds: audit rows.
        take_slot: take a free slot for `worker_id` under `epoch`, or write nothing.
        free_slot: give back the slot taken under `epoch`.
        ended: the run is over: its artifacts' time starts to count.
        unring: take the run's doorbell down.
        forget_secrets: delete the run's secret inputs.
        closes: calls that the audit log told the beginning of, and of which `deeds` tell the end.
        cuts: the code that is told of all other such calls: the lease under which they were made
            ends here. Empty: they go on.
    """

    run: Run
    guard: Mapping[str, Any]
    values: Mapping[str, Any] = field(default_factory=dict)
    events: Sequence[NewEvent] = ()
    steps: Sequence[StepChange] = ()
    blobs: Sequence[tuple[StoredBlob, int | None]] = ()
    audit_events: Sequence[AuditEvent] = ()
    worker_id: str = ""
    epoch: int = 0
    take_slot: bool = False
    free_slot: bool = False
    ended: bool = False
    cancel_wakeup: bool = False
    forget_secrets: bool = False
    finished_calls: Sequence[str] = ()
    abort_code: str = ""
