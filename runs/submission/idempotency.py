"""Idempotency keys of submits: one run per (principal, template, key) while it lives (S0
§4.1.1).
"""

from __future__ import annotations

from typing import Any

from runs.models import Run, RunKey
from runs.queries.visibility import is_past_ttl
from runs.submission.validation import Submission


def claim_key(submission: Submission, run_id: str) -> tuple[Run, str] | None:
    """Take the idempotency key for this run, or return the run that has it and its inputs' digest.

    The unique row is the guard: of many submits at once one inserts it, the others wait for that
    commit.
    """
    scope = _scope(submission)
    RunKey.objects.bulk_create(
        [RunKey(**scope, run_id=run_id, inputs_digest=submission.inputs_digests[0])],
        ignore_conflicts=True,
    )
    row = RunKey.objects.get(**scope)
    while row.run_id != run_id:
        known = Run.objects.filter(id=row.run_id).first()
        if known is not None and not is_past_ttl(known):
            return known, row.inputs_digest
        # Its time is over: exactly one of those who see that takes it.
        RunKey.objects.filter(id=row.id, run_id=row.run_id).update(
            run_id=run_id, inputs_digest=submission.inputs_digests[0]
        )
        row.refresh_from_db()
    return None


def run_of_key(submission: Submission) -> tuple[Run, str] | None:
    """Return the run that has the submission's idempotency key, and its inputs' digest."""
    if submission.key is None:
        return None
    row = RunKey.objects.filter(**_scope(submission)).first()
    known = Run.objects.filter(id=row.run_id).first() if row else None
    if row is None or known is None or is_past_ttl(known):
        return None
    return known, row.inputs_digest


def _scope(submission: Submission) -> dict[str, Any]:
    return {
        "principal_id": submission.principal.id,
        "template_id": submission.template.template_id,
        "key": submission.key,
    }
