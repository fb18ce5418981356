"""Transitions that compete, in threads: one of them wins, and all rows agree with it. Each database
has a writer of its own, so the tests run on both.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import pytest
from django.db.models import F

from artifacts.models import Artifact
from artifacts.services import StoredBlob
from decisions.foundation.infra.ids import new_id
from decisions.models import AuditEntry
from runs.lifecycle.changes import NewEvent, Plus, Transition
from runs.lifecycle.state_machine import InvalidTransition, move
from runs.lifecycle.transition import apply
from runs.models import TERMINAL, Run, RunEvent, RunStatus, Slot, Webhook, WebhookDelivery
from runs.queue.leases import lease_run
from tests.support.runs.concurrent_calls import at_once

MakeRun = Callable[..., Run]
GUARD = {"status": RunStatus.RUNNING, "epoch": 1}
ROUNDS = 3


def end(run: Run, to: RunStatus) -> bool:
    error = {} if to == RunStatus.SUCCEEDED else {"error": {"errorCode": to, "message": "-"}}
    change = Transition(run, GUARD, error, epoch=1, free_slot=True)
    try:
        move(change, to, actor=f"ended as {to}")
    except InvalidTransition:
        return False
    return True


def journal(run: Run) -> int:
    """Write three batches of two events each and an artifact; return how many were written."""
    written = 0
    for _ in range(3):
        blob = StoredBlob(new_id("art_"), "0" * 64, 1, "n", "text/plain", "file")
        two = [NewEvent("step.started"), NewEvent("step.succeeded")]
        change = Transition(run, GUARD, {"done_steps": Plus(1)}, events=two, blobs=[(blob, 0)])
        written += apply(change) is not None
    return written


@pytest.mark.parametrize("attempt", range(ROUNDS))
def test_of_competing_ends_one_is_written_with_everything_that_belongs_to_it(
    make_run: MakeRun, attempt: int
) -> None:
    run = make_run(status="running", epoch=1, lease_owner="w")
    Slot.objects.filter(number=0).update(run_id=run.id, worker_id="w", epoch=1)
    Webhook.objects.create(
        id="hook_every",
        tenant_id=run.tenant_id,
        workspace_id=run.workspace_id,
        url="http://x/",
        trust="local",
        every_run=True,
        secret=b"",
        created_at=datetime.now(UTC),
    )
    ends = [partial(end, run, to) for to in sorted(TERMINAL)]
    *ended, first, second = at_once([*ends, partial(journal, run), partial(journal, run)])
    assert ended.count(True) == 1
    status = sorted(TERMINAL)[ended.index(True)]
    run.refresh_from_db()
    events = list(RunEvent.objects.filter(run=run).order_by("seq").values_list("seq", "type"))
    assert [seq for seq, _type in events] == list(range(1, run.last_seq + 1))
    assert events[-1] == (run.last_seq, f"run.{status}")
    written = first + second
    assert (run.status, run.done_steps, run.last_seq) == (status, written, 2 * written + 1)
    assert AuditEntry.objects.get(resource_id=run.id).action == f"run.{status}"
    assert WebhookDelivery.objects.get().event == f"run.{status}"
    assert Artifact.objects.filter(run_id=run.id).count() == written
    assert not Slot.objects.filter(run_id__isnull=False).exists()


@pytest.mark.parametrize("attempt", range(ROUNDS))
def test_of_competing_claims_one_takes_the_run_and_no_slot_is_taken_twice(
    make_run: MakeRun, attempt: int
) -> None:
    runs = [make_run() for _ in range(2)]
    Slot.objects.exclude(number=0).update(run_id=F("number"))  # one slot is free
    claims = [partial(lease_run, run, worker_id=f"w{n}") for n in range(3) for run in runs]
    assert at_once(claims).count(True) == 1
    [taken] = Run.objects.filter(status="running")
    slot = Slot.objects.get(number=0)
    assert (slot.run_id, slot.worker_id, slot.epoch) == (taken.id, taken.lease_owner, 1)
    assert RunEvent.objects.get().run_id == taken.id
    assert AuditEntry.objects.get().resource_id == taken.id
