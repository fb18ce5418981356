"""Values that describe a change of a run; `runs.lifecycle.transition` writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from artifacts.services import StoredBlob
from decisions.audit.record import AuditEvent
from decisions.foundation.infra.preconditions import Precondition
from decisions.models import AuditEntry
from runs.models import OpenCall, Run, RunStep, StepStatus


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event without its seq, which is assigned under the run's row lock."""

    type: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plus:
    """Increments a column by `amount`."""

    amount: int


@dataclass(slots=True)
class CallStart:
    """The start of a step's first call, written by the transition that starts the step. If a
    precondition does not hold, the step starts without the call.

    Attributes:
        row, entry: the row of the call in flight, and the audit row of its start.
        is_written: whether they were written; set when the transition is written.
    """

    row: OpenCall
    entry: AuditEntry
    preconditions: Sequence[Precondition]
    is_written: bool = False


class EndedStepCall(Protocol):
    """A tool call of a step that ended or was aborted (`runs.calls.record`)."""

    call_id: str

    @property
    def is_aborted(self) -> bool:
        """Whether the call has not ended by itself."""

    def end_events(self, run: Run, step: int) -> list[AuditEvent]:
        """Return the audit events of its end."""


@dataclass(frozen=True, slots=True)
class StepChange:
    """A step's new status and what is written with it.

    Attributes:
        events: the events of the change, in order.
        blobs: stored bytes that become artifacts of the step.
        calls: the tool calls that ended, for their audit events.
        paused: what a step had done that is pending again because it waits for a person.
        new: the row of a step that the template appended; it is inserted with this status.
        call_start: the tool call that starts together with the step. At most one in a transition.
    """

    index: int
    status: StepStatus
    events: Sequence[NewEvent]
    output: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    blobs: Sequence[StoredBlob] = ()
    calls: Sequence[EndedStepCall] = ()
    paused: Mapping[str, Any] | None = None
    new: RunStep | None = None
    call_start: CallStart | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """Everything to write about one run in one commit.

    Attributes:
        run: the run; only its id, tenant, workspace, task and options are read.
        guard: columns and the values they must have; otherwise nothing is written.
        values: columns to set, to a value or to `Plus`.
        steps: changes of steps, written by `worker_id` under `epoch`.
        blobs: stored bytes that become artifacts, each with the index of its step.
        take_slot: take a free slot for `worker_id` under `epoch`; without one nothing is written.
        free_slot: free the slot taken under `epoch`.
        ended: the run has ended: its artifacts begin to expire and its webhooks get deliveries.
        delete_secrets: delete the run's secret inputs.
        finished_calls: ids of tool calls in flight whose end is among `audit_events`.
        abort_code: the error code of all other tool calls in flight: the lease ends here. Empty:
            they continue.
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
    delete_secrets: bool = False
    finished_calls: Sequence[str] = ()
    abort_code: str = ""
