"""Export the evidence of one run as one file: its inputs, steps, events, artifacts, decisions, and
its part of the audit log with the seals. `manage.py verify_audit --bundle` verifies it offline.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any

from django.db.models import Q

from artifacts.models import Artifact
from artifacts.selectors import describe_artifact, is_expired
from artifacts.storage.blobs import open_blob
from decisions.audit.bundle import Record, bundle_lines
from decisions.audit.query import (
    audit_records,
    bundle_head,
    limited_to_users,
)
from decisions.audit.record import AuditEvent, record
from decisions.foundation.errors import RunNotFound
from decisions.foundation.security.masking import input_masker
from decisions.identity.authority import seen_by
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, Confirmation, Decision
from runners.actions.typed_text import hide_typed_text
from runs.models import Run, RunEvent, RunStep

EVIDENCE_NAME = "{}.evidence.jsonl"
CHUNK_BYTES = 192 * 1024
BATCH_SIZE = 200
# Columns of a decision that are left out: internal keys without meaning for a verifier.
_LEFT_OUT = frozenset({"answer_mac", "call_key", "token_digest", "sealed_arguments"})


def export_evidence(
    *, principal: Principal, run_id: str, contents: bool = False
) -> Iterator[bytes]:
    """Return the lines of a run's evidence; a run past its TTL has evidence too. The export is
    audited, and that is committed before the first line. For a credential restricted to users it
    has only the decisions and audit events that `GET /audit` shows, and its head names the users.

    Args:
        contents: include the bytes of artifacts, not only their digests.

    Raises:
        RunNotFound: Unknown, another's, or deleted after its retention.
        Forbidden: The caller lacks a scope.
    """
    for scope in ("audit:read", "runs:read", *(["artifacts:read"] if contents else [])):
        principal.require(scope)
    run = Run.objects.filter(seen_by(principal), id=run_id).first()
    if run is None:
        raise RunNotFound(f"There is no run {run_id[:64]}.")
    record(
        AuditEvent(
            "run.evidence_exported",
            principal.id,
            "run",
            run.id,
            run.tenant_id,
            run.workspace_id,
            {"contents": contents},
        )
    )
    fields: dict[str, Any] = {"runId": run.id, "contents": contents}
    if principal.acts_for is not None:
        fields["users"] = sorted(principal.acts_for)
    head = bundle_head("run", made_by=principal.id, **fields)
    return bundle_lines(head, _records(run, principal, contents=contents))


def _records(run: Run, principal: Principal, *, contents: bool) -> Iterator[Record]:
    mask = input_masker([run.inputs, run.options]).value
    return chain(
        [mask(hide_typed_text({"type": "run", **_columns(run)}))],
        map(mask, map(hide_typed_text, _steps(run))),
        map(mask, _events(run)),
        _artifacts(run, contents=contents),
        map(mask, _decisions(run, principal)),
        _audit(run, principal),
    )


def _columns(row: Any) -> Record:
    """Return a row's columns with camelCase names; none of them has a secret input."""
    columns = {
        field.attname: getattr(row, field.attname)
        for field in row._meta.concrete_fields
        if field.attname not in _LEFT_OUT
    }
    return {_camel(name): _plain(value) for name, value in columns.items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _plain(value: Any) -> Any:
    return value.isoformat(timespec="microseconds") if isinstance(value, datetime) else value


def _steps(run: Run) -> Iterator[Record]:
    after = -1
    while batch := list(
        RunStep.objects.filter(run=run, index__gt=after).order_by("index")[:BATCH_SIZE]
    ):
        yield from ({"type": "step", **_columns(step)} for step in batch)
        after = batch[-1].index


def _events(run: Run) -> Iterator[Record]:
    """Yield the events that the log had when the export started; later ones are left out."""
    after = 0
    existing = RunEvent.objects.filter(run=run, seq__lte=run.last_seq)
    while batch := list(existing.filter(seq__gt=after).order_by("seq")[:BATCH_SIZE]):
        for event in batch:
            at = _plain(event.at)
            yield {
                "type": "event",
                "seq": event.seq,
                "event": event.type,
                "at": at,
                "data": event.data,
            }
        after = batch[-1].seq


def _artifacts(run: Run, *, contents: bool) -> Iterator[Record]:
    for row in list(Artifact.objects.filter(run_id=run.id).order_by("created_at", "id")):
        artifact = {"type": "artifact", **describe_artifact(row), "stepIndex": row.step_index}
        file = None
        if contents and not is_expired(row):
            file = open_blob(row.sha256, size_bytes=row.size_bytes)
        if file is None:
            yield artifact
            continue
        yield {**artifact, "contentFollows": True}
        with file:
            for chunk in iter(partial(file.read, CHUNK_BYTES), b""):
                yield {"type": "content", "data": base64.b64encode(chunk).decode()}


def _decisions(run: Run, principal: Principal) -> Iterator[Record]:
    decisions = Decision.objects.filter(seen_by(principal), run_id=run.id)
    for decision in list(decisions.order_by("id")):
        row = Confirmation.objects.filter(decision=decision).first()
        confirmation = _columns(row) if row else None
        yield {"type": "decision", **_columns(decision), "confirmation": confirmation}


def _audit(run: Run, principal: Principal) -> Iterator[Record]:
    """Yield the audit events about the run, its artifacts and its decisions."""
    artifacts = Artifact.objects.filter(run_id=run.id).values_list("id", flat=True)
    decisions = Decision.objects.filter(run_id=run.id).values_list("id", flat=True)
    resource_ids: Iterable[str] = [run.id, *artifacts]
    rows = AuditEntry.objects.filter(workspace_id=run.workspace_id).filter(
        Q(resource_id__in=resource_ids)
        | Q(resource_type="decision", resource_id__in=[str(number) for number in decisions])
    )
    return audit_records(limited_to_users(rows, principal))
