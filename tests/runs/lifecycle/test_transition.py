"""Both implementations of a transition leave the same rows, and none when the guard does not
match.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts.models import Artifact
from artifacts.services import StoredBlob
from decisions.audit.record import AuditEvent, is_genuine
from decisions.models import AuditEntry
from runs.lifecycle import transition as transition_module
from runs.lifecycle import writers
from runs.lifecycle.changes import NewEvent, Plus, StepChange, Transition
from runs.lifecycle.writes import writes_of
from runs.models import (
    Run,
    RunEvent,
    RunSecret,
    RunStep,
    Slot,
    StepStatus,
    Webhook,
    WebhookDelivery,
)

MakeRun = Callable[..., Run]
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SETTINGS = settings(max_examples=80)
CHANGED_MODELS = (Run, RunEvent, RunStep, RunSecret, Slot, WebhookDelivery)
Rows = dict[str, list[tuple[Any, ...]]]

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
jsons = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | texts
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, jsons, max_size=3)
events = st.builds(NewEvent, type=st.sampled_from(["step.started", "tool.update"]), data=objects)
blobs = st.builds(
    StoredBlob,
    artifact_id=st.uuids().map(str),
    sha256=st.just("0" * 64),
    size_bytes=st.integers(0, 2**40),
    name=texts,
    mime_type=st.just("text/plain"),
    kind=st.sampled_from(["file", "result"]),
)
audit_events = st.builds(
    AuditEvent,
    action=st.just("tool.called"),
    actor=texts,
    resource_type=st.just("run"),
    resource_id=texts,
    tenant_id=st.just("t"),
    workspace_id=st.just("w"),
    metadata=objects,
)
steps = st.builds(
    StepChange,
    index=st.integers(0, 3),
    events=st.just(()),
    status=st.sampled_from([StepStatus.STARTED, StepStatus.SUCCEEDED, StepStatus.FAILED]),
    output=st.none() | objects,
    error=st.none() | objects,
)
appended = st.builds(
    RunStep,
    index=st.integers(4, 6),
    name=texts,
    effect=st.sampled_from(["read", "once"]),
    effect_key=texts,
    input=objects,
    attempts=st.integers(0, 1),
)
guards = st.fixed_dictionaries(
    {"status": st.just("running")},
    optional={
        "epoch": st.integers(1, 2),
        "lease_owner": st.sampled_from(["worker", None, "other"]),
        "ready": st.booleans(),
    },
)
columns = st.fixed_dictionaries(
    {},
    optional={
        "lease_owner": st.none() | st.just("next"),
        "epoch": st.builds(Plus, st.integers(0, 2)),
        "done_steps": st.builds(Plus, st.integers(0, 3)),
        "total_steps": st.builds(Plus, st.integers(0, 3)),
        "active_ms": st.integers(0, 2**40),
        "ready": st.booleans(),
        "result": st.none() | objects,
        "error": st.none() | objects,
        "waiting_for": st.none() | objects,
        "warnings": st.lists(texts, max_size=3),
        "next_actions": st.lists(objects, max_size=2),
        "result_summary": texts,
        "started_at": st.none() | st.just(NOW),
    },
)


@st.composite
def transitions(draw: st.DrawFn, run: Run) -> Transition:
    values: dict[str, Any] = draw(columns)
    slot = draw(st.sampled_from(["take", "free", ""]))
    ended = draw(st.booleans())
    if ended:
        end = {"status": "succeeded", "ended_at": NOW, "lease_owner": None, "waiting_for": None}
        values = {**values, **end}
    return Transition(
        run,
        draw(guards),
        values,
        events=draw(st.lists(events, max_size=4)),
        steps=[
            *draw(st.lists(steps, max_size=4, unique_by=lambda step: step.index)),
            *(
                _appending(run, row, begins=draw(st.booleans()))
                for row in draw(st.lists(appended, max_size=2, unique_by=lambda row: row.index))
            ),
        ],
        blobs=draw(st.lists(st.tuples(blobs, st.none() | st.integers(0, 3)), max_size=2)),
        audit_events=draw(st.lists(audit_events, max_size=2)),
        worker_id="worker",
        epoch=draw(st.integers(1, 2)),
        ended=ended,
        take_slot=slot == "take",
        free_slot=slot == "free",
        delete_secrets=draw(st.booleans()),
    )


def _appending(run: Run, row: RunStep, *, begins: bool) -> StepChange:
    row.run_id = run.id
    status = StepStatus.STARTED if begins else StepStatus.PENDING
    return StepChange(row.index, status, (), new=row)


def rows() -> Rows:
    """Return every row that a transition may change, without columns that differ in every write."""
    skipped_columns = {"id", "mac", "created_at"}
    found: Rows = {}
    for model in (*CHANGED_MODELS, Artifact, AuditEntry):
        skipped = skipped_columns if model in (Artifact, AuditEntry, RunEvent, RunStep) else set()
        names = [f.attname for f in model._meta.concrete_fields if f.attname not in skipped]
        found[model.__name__] = sorted(model.objects.values_list(*names), key=repr)
    return found


def outcome(write: Callable[[], int | None]) -> tuple[object, Rows]:
    """Return the result of the write and the rows it leaves, then roll it back."""
    with transaction.atomic():
        try:
            with transaction.atomic():
                answer: object = write()
        except DatabaseError as error:
            answer = type(error).__name__
        rows_left = rows()
        assert all(is_genuine(entry) for entry in AuditEntry.objects.all())
        transaction.set_rollback(True)
    return answer, rows_left


def make_leased_run(make_run: MakeRun) -> Run:
    """Create a running run with steps, events, a wake-up, webhooks and an artifact."""
    named = {"webhookId": "hook_named"}
    run = make_run(
        status="running", epoch=1, lease_owner="worker", total_steps=4, last_seq=2, options=named
    )
    for name, every_run, disabled_at in (
        ("every", True, None),
        ("named", False, None),
        ("other", False, None),
        ("off", True, NOW),
    ):
        Webhook.objects.create(
            id=f"hook_{name}",
            tenant_id="t",
            workspace_id=run.workspace_id,
            url="http://x/",
            trust="local",
            every_run=every_run,
            disabled_at=disabled_at,
            secret=b"",
            created_at=NOW,
        )
    RunStep.objects.bulk_create(
        RunStep(run=run, index=n, name=f"s{n}", effect="read", effect_key=f"{n}") for n in range(4)
    )
    for seq in (1, 2):
        RunEvent.objects.create(run=run, seq=seq, type="created", at=NOW)
    RunSecret.objects.create(run=run, sealed=b"sealed", last_step=1)
    Artifact.objects.create(
        id="art_before",
        tenant_id="t",
        workspace_id="w",
        run_id=run.id,
        kind="file",
        name="n",
        mime_type="text/plain",
        sha256="1" * 64,
        size_bytes=1,
        created_at=NOW,
    )
    return run


@pytest.mark.slow
@pytest.mark.skipif(connection.vendor != "postgresql", reason="one statement is PostgreSQL's")
@pytest.mark.parametrize("slots", ["free", "taken", "none"])
def test_both_implementations_leave_the_same_rows(make_run: MakeRun, slots: str) -> None:
    run = make_leased_run(make_run)
    if slots == "taken":
        Slot.objects.filter(number=1).update(run_id=run.id, worker_id="worker", epoch=1)
    elif slots == "none":
        for slot in Slot.objects.all():
            Slot.objects.filter(number=slot.number).update(run_id=f"other{slot.number}")

    @SETTINGS
    @given(transitions(run))
    def check_change(change: Transition) -> None:
        in_sequence = outcome(lambda: writers.write_in_sequence(writes_of(change, NOW)))
        in_one = outcome(lambda: writers.write_in_one_statement(writes_of(change, NOW)))
        assert in_one == in_sequence

    check_change()


@pytest.mark.parametrize(
    "guard",
    [
        {"status": "queued"},
        {"status": "running", "epoch": 0},
        {"status": "running", "lease_owner": "other"},
        {"status": "running", "lease_owner": None},
        {"status": "running", "ready": False},
    ],
)
def test_a_guard_that_does_not_match_changes_no_row(
    make_run: MakeRun, guard: dict[str, Any]
) -> None:
    run = make_leased_run(make_run)
    Slot.objects.filter(number=0).update(run_id=run.id, worker_id="worker", epoch=1)
    before = rows()
    blob = StoredBlob("art_new", "2" * 64, 1, "n", "text/plain", "file")
    change = Transition(
        run,
        guard,
        {"active_ms": 5},
        events=[NewEvent("x")],
        blobs=[(blob, 0)],
        epoch=1,
        steps=[StepChange(0, StepStatus.SUCCEEDED, [], output={})],
        ended=True,
        free_slot=True,
        audit_events=[AuditEvent("a", "b", "run", run.id, "t", "w")],
        worker_id="worker",
    )
    assert transition_module.apply(change) is None
    assert rows() == before


def test_a_lease_without_a_free_slot_changes_no_row(make_run: MakeRun) -> None:
    run = make_leased_run(make_run)
    for slot in Slot.objects.all():
        Slot.objects.filter(number=slot.number).update(run_id=f"other{slot.number}")
    before = rows()
    change = Transition(
        run,
        {"status": "running"},
        {"active_ms": 5},
        events=[NewEvent("x")],
        take_slot=True,
        audit_events=[AuditEvent("a", "b", "run", run.id, "t", "w")],
        worker_id="w",
        epoch=1,
    )
    assert transition_module.apply(change) is None
    assert rows() == before
