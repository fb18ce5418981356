"""Every write of a worker checks its lease; concurrent writers number events without gaps."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from artifacts.models import Artifact
from artifacts.services import StoredBlob, store_blob
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.calls.record import CallRecord
from runs.journal.writer import Ending, save_active_ms, write
from runs.lifecycle.changes import NewEvent, StepChange, Transition
from runs.lifecycle.lease import Lease, LeaseLost
from runs.lifecycle.transition import apply
from runs.models import Run, RunEvent, RunStatus, RunStep, StepStatus
from runs.queries.runs import list_events
from runs.queue.leases import release_lease
from runs.queue.slots import release_slot
from tests.support.runs.concurrent_calls import at_once
from tests.support.runs.worker_rows import fresh, must_take, take, taken_slots

Submit = Callable[..., str]
SUCCEEDED = Ending(RunStatus.SUCCEEDED, result={"done": 1}, summary="done")


def succeeded_step(index: int, **more: Any) -> StepChange:
    return StepChange(
        index,
        StepStatus.SUCCEEDED,
        [NewEvent("step.succeeded", {"step": index})],
        output={},
        **more,
    )


def old_lease(submit: Submit, *, holder: str) -> Lease:
    """Return a lease of w1 that has ended; `holder` has the run now."""
    submit("ok", "ok")
    lease = must_take("w1")
    release_lease(lease, reason="database was away", active_ms=1)
    must_take(holder)
    return lease


def all_rows(run_id: str) -> list[Any]:
    rows: list[Any] = [Run.objects.filter(id=run_id).values().get(), taken_slots()]
    for model in (RunEvent, RunStep, Artifact, AuditEntry):
        rows.append(list(model._default_manager.order_by("pk").values()))
    return rows


def a_blob() -> StoredBlob:
    return store_blob(b"late", name="late.txt", mime_type="text/plain")


LATE_WRITES: dict[str, Callable[[Lease], object]] = {
    "a step that starts": lambda lease: write(
        lease, [StepChange(0, StepStatus.STARTED, [])], active_ms=1
    ),
    "a step that is over": lambda lease: write(lease, [succeeded_step(0)], active_ms=1),
    "an event": lambda lease: write(lease, [], active_ms=1, events=[NewEvent("tool.update")]),
    "an artifact": lambda lease: write(lease, [succeeded_step(0, blobs=(a_blob(),))], active_ms=1),
    "a tool call": lambda lease: write(
        lease, [succeeded_step(0, calls=[CallRecord("read_page", "d" * 64, {})])], active_ms=1
    ),
    "the end": lambda lease: write(lease, [], active_ms=1, ending=SUCCEEDED),
    "the clock": lambda lease: save_active_ms(lease, 99),
    "releasing the run": lambda lease: release_lease(lease, reason="draining", active_ms=9),
    "releasing the slot": lambda lease: release_slot(lease.run.id, epoch=lease.epoch),
}


@pytest.mark.parametrize("verb", LATE_WRITES)
@pytest.mark.parametrize("holder", ["w1", "w2"])
def test_a_late_write_with_an_old_lease_is_refused(submit: Submit, holder: str, verb: str) -> None:
    old = old_lease(submit, holder=holder)
    before = all_rows(old.run.id)
    try:
        result = LATE_WRITES[verb](old)
    except LeaseLost:
        result = False
    assert result is False
    assert all_rows(old.run.id) == before


@pytest.mark.parametrize("verb", LATE_WRITES)
def test_a_write_of_another_worker_with_the_current_epoch_is_refused(
    submit: Submit, verb: str
) -> None:
    submit("ok", "ok")
    lease = must_take("w1")
    if verb == "releasing the slot":
        pytest.skip("a slot is named by run and epoch alone")
    forged = dataclasses.replace(lease, worker_id="w2")
    before = all_rows(lease.run.id)
    try:
        result = LATE_WRITES[verb](forged)
    except LeaseLost:
        result = False
    assert result is False
    assert all_rows(lease.run.id) == before


def test_a_step_is_written_with_its_artifacts_events_and_calls(submit: Submit) -> None:
    run_id = submit("ok", "ok")
    lease = must_take("w1")
    call = CallRecord("read_page", "d" * 64, {}, failed_code="")
    change = succeeded_step(1, blobs=(a_blob(),), calls=[call])
    write(lease, [change], active_ms=7)
    step = RunStep.objects.get(run_id=run_id, index=1)
    assert (step.status, step.output, step.epoch) == ("succeeded", {}, 1)
    assert step.ended_at is not None
    row = Artifact.objects.get(run_id=run_id)
    assert (row.step_index, row.expires_at) == (1, None)
    events = RunEvent.objects.filter(run_id=run_id).order_by("seq")
    types = list(events.values_list("seq", "type"))
    assert types[-2:] == [(4, "step.succeeded"), (5, "artifact.created")]
    call = AuditEntry.objects.get(action="tool.called")
    assert call.metadata == {"tool": "read_page", "step": 1, "argsDigest": "d" * 64, "ok": True}
    assert (fresh(run_id).done_steps, fresh(run_id).active_ms) == (1, 7)


def test_the_end_releases_the_slot_and_sets_the_expiry_of_artifacts(submit: Submit) -> None:
    run_id = submit()
    lease = must_take("w1")
    write(lease, [succeeded_step(0, blobs=(a_blob(),))], active_ms=1)
    write(lease, [], active_ms=2, ending=dataclasses.replace(SUCCEEDED, blobs=[a_blob()]))
    assert taken_slots() == []
    assert Artifact.objects.filter(run_id=run_id, expires_at__isnull=False).count() == 2
    run = fresh(run_id)
    assert (run.status, run.result, run.result_summary) == ("succeeded", {"done": 1}, "done")


def test_a_terminal_row_never_changes(submit: Submit) -> None:
    run_id = submit()
    lease = must_take("w1")
    write(lease, [], active_ms=1, ending=SUCCEEDED)
    before = all_rows(run_id)
    for verb in LATE_WRITES.values():
        with contextlib.suppress(LeaseLost):
            assert verb(lease) is False
    assert all_rows(run_id) == before
    assert take("w2") is None


def test_concurrent_writers_number_events_without_gaps(submit: Submit) -> None:
    run_id = submit()
    lease = must_take("w1")
    transition = Transition(lease.run, {"status": "running"}, events=[NewEvent("x"), NewEvent("y")])
    write_events = partial(write, lease, [], active_ms=1, events=[NewEvent("a"), NewEvent("b")])
    at_once([write_events, partial(apply, transition)] * 6)
    seqs = list(RunEvent.objects.filter(run_id=run_id).order_by("id").values_list("seq", flat=True))
    assert seqs == list(range(1, 3 + 24 + 1))
    assert fresh(run_id).last_seq == len(seqs)
    in_order = RunEvent.objects.filter(run_id=run_id).order_by("seq").values_list("type", flat=True)
    pairs = {"".join(in_order[n : n + 2]) for n in range(3, 27, 2)}
    assert pairs == {"ab", "xy"}  # events of one write are adjacent


def test_a_reader_that_continues_at_the_last_seq_misses_no_event(
    submit: Submit, principal: Principal
) -> None:
    run_id = submit()
    lease = must_take("w1")
    for number in range(7):
        write(lease, [], active_ms=number, events=[NewEvent("tool.update", {"n": number})])
    write(lease, [], active_ms=9, ending=SUCCEEDED)
    after, seqs, terminal = 0, [], False
    while not terminal:
        page = list_events(principal=principal, run_id=run_id, after=after, limit=3)
        seqs += [event["seq"] for event in page["events"]]
        after, terminal = page["lastSeq"], page["terminal"]
    assert seqs == list(range(1, 12))
    page = list_events(principal=principal, run_id=run_id, after=11)
    assert page == {"events": [], "lastSeq": 11, "terminal": True}


def test_terminal_is_true_only_with_the_last_event(submit: Submit, principal: Principal) -> None:
    run_id = submit()
    write(must_take("w1"), [], active_ms=1, ending=SUCCEEDED)
    page = list_events(principal=principal, run_id=run_id, limit=2)
    assert (page["lastSeq"], page["terminal"]) == (2, False)


@pytest.mark.parametrize("after", [0, 3, 2**31, 2**53 - 1])
def test_any_seq_after_the_last_event_returns_an_empty_page(
    submit: Submit, principal: Principal, after: int
) -> None:
    run_id = submit()
    page = list_events(principal=principal, run_id=run_id, after=after)
    assert page["terminal"] is False
    assert len(page["events"]) == (after == 0)
