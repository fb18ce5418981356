"""The invariants of reliability.md that a test can read from the rows once no run is active."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db.models import Q

from artifacts.models import Artifact
from artifacts.storage.blobs import blob_path
from decisions.audit.record import is_genuine
from decisions.models import AuditEntry
from runs.models import TERMINAL, OpenCall, Run, RunEvent, RunSecret, RunStep, Slot

ENDS = {f"run.{status}" for status in TERMINAL}


def broken_invariants() -> list[str]:
    """Return each broken invariant as one sentence; empty when every invariant holds."""
    found = [*_check_installation(), *_check_audit()]
    for run in Run.objects.all():
        found += [f"{run.id}: {violation}" for violation in (*_check_run(run), *_check_steps(run))]
    return found


def _check_installation() -> Iterator[str]:
    taken = Slot.objects.filter(run_id__isnull=False)
    if taken.exists():
        yield f"I12 slots are taken: {list(taken.values_list('run_id', 'worker_id'))}"
    if Slot.objects.count() < settings.MAX_CONCURRENT_RUNS:
        yield "I5 a slot is missing"
    if Run.objects.filter(Q(lease_owner__isnull=False) | Q(pinned_worker__isnull=False)).exists():
        yield "I12 a lease is left"
    if RunSecret.objects.exists():
        yield "I7 secret inputs are left"
    ended = Run.objects.filter(ended_at__isnull=False).values("id")
    if kept := Artifact.objects.filter(run_id__in=ended, expires_at__isnull=True).count():
        yield f"{kept} artifacts of ended runs do not expire"
    for row in Artifact.objects.filter(expired_at__isnull=True):
        path = Path(settings.CONTINUITY_HOME) / "artifacts" / blob_path(row.sha256)
        if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != row.sha256:
            yield f"an artifact's bytes are lost or do not match: {row.id}"


def _check_audit() -> Iterator[str]:
    started, ended = Counter[str](), Counter[str]()
    for entry in AuditEntry.objects.all():
        if not is_genuine(entry):
            yield f"I9 an audit row has no valid signature: {entry.id}"
        if "callId" in entry.metadata:
            counted = started if entry.action == "tool.called" else ended
            counted[entry.metadata["callId"]] += 1
    if (
        started != ended
        or any(times > 1 for times in started.values())
        or OpenCall.objects.exists()
    ):
        yield f"I8 calls are recorded as started {dict(started)} and as ended {dict(ended)}"


def _check_run(run: Run) -> Iterator[str]:
    if run.status not in TERMINAL or run.ended_at is None:
        yield f"I1 it has not ended: {run.status}"
    events = list(RunEvent.objects.filter(run=run).order_by("seq"))
    if [event.seq for event in events] != list(range(1, run.last_seq + 1)):
        yield "I11 its events have a gap"
    end_events = [event for event in events if event.type in ENDS]
    if [event.type for event in end_events] != [f"run.{run.status}"] or end_events[-1:] != events[
        -1:
    ]:
        yield f"I2 its end was recorded {len(end_events)} times, or is not the last event"
    types = Counter(event.type for event in events)
    if types["run.queued"] != 1 or types["run.started"] > 1:
        yield f"I2 it was queued {types['run.queued']} times, started {types['run.started']} times"
    actions = Counter(
        AuditEntry.objects.filter(resource_id=run.id).values_list("action", flat=True)
    )
    if actions["run.submitted"] != 1 or sum(actions[status] for status in ENDS) != 1:
        yield f"I8 its audit rows are {dict(actions)}"
    if actions["run.started"] != types["run.started"]:
        yield "I8 its audited start does not match its events"
    if run.updated_at < run.created_at or (run.ended_at and run.ended_at < run.created_at):
        yield "I11 its timestamps decrease"


def _check_steps(run: Run) -> Iterator[str]:
    steps = list(RunStep.objects.filter(run=run).order_by("index"))
    ended = sum(step.status in ("succeeded", "failed") for step in steps)
    planned = sum(step.status != "skipped" for step in steps)  # a list may end before its last page
    if run.done_steps != ended or ended > run.total_steps or planned > run.total_steps:
        yield f"I11 progress says {run.done_steps} of {run.total_steps}, the journal {ended}"
    if len({step.effect_key for step in steps}) != len(steps):
        yield "I3 two steps have the same effect key"
    # A once step that waited for a person resumes after its completed calls, which adds one
    # start.
    if any(step.effect == "once" and step.attempts > 1 and not step.paused for step in steps):
        yield "I3 a once step was started twice"
    if run.status in ("succeeded", "partial_success"):
        unfinished = [step.index for step in steps if step.status in ("pending", "started")]
        if unfinished:
            yield f"I1 it ended with steps {unfinished} undone"
