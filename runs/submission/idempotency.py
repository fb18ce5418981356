"""Idempotency keys of submits (S0 §4.1.1): one run per (principal, template, key) while that run is
visible.

A submit with a used key is answered with the run that has it: `deduplicated` is true, and
`inputs_match` says whether its inputs are those of the first submit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from runs.models import Run, RunKey
from runs.queries.visibility import is_past_ttl
from runs.submission.validation import Submission, SubmittedRun


class KeyHolder(NamedTuple):
    """The run that has an idempotency key, and the digest of the inputs of its submit."""

    run: Run
    inputs_digest: str


def answer_key_holder(
    holder: KeyHolder, submission: Submission, *, is_auto_mode: bool
) -> SubmittedRun:
    """Return the answer to a submit whose idempotency key a run has already."""
    inputs_match = holder.inputs_digest in submission.inputs_digests
    return answer_submit(holder.run, is_auto_mode=is_auto_mode, inputs_match=inputs_match)


def answer_submit(
    run: Run, *, is_auto_mode: bool = False, inputs_match: bool | None = None
) -> SubmittedRun:
    """Return the answer to a submit.

    Args:
        inputs_match: whether a repeated submit has the inputs of the first one; None: this submit
            created the run.
    """
    return SubmittedRun(
        run_id=run.id,
        session_id=run.session_id,
        status=run.status,
        mode="sync" if run.mode == "sync" else "async",
        deduplicated=inputs_match is not None,
        inputs_match=inputs_match,
        timeout_ms=run.timeout_ms,
        is_auto_mode=is_auto_mode,
    )


def claim_key(submission: Submission, run_id: str) -> KeyHolder | None:
    """Claim the submission's idempotency key for this run, in the caller's transaction.

    Returns None, or the run that has the key already. The unique row decides between concurrent
    submits: one inserts it, the others wait for that commit.
    """
    scope = _scope(submission)
    RunKey.objects.bulk_create(
        [RunKey(**scope, run_id=run_id, inputs_digest=submission.inputs_digests[0])],
        ignore_conflicts=True,
    )
    row = RunKey.objects.get(**scope)
    while row.run_id != run_id:
        run = Run.objects.filter(id=row.run_id).first()
        if run is not None and not is_past_ttl(run):
            return KeyHolder(run, row.inputs_digest)
        # That run is past its TTL. The guard on run_id lets one of the concurrent submits have it.
        RunKey.objects.filter(id=row.id, run_id=row.run_id).update(
            run_id=run_id, inputs_digest=submission.inputs_digests[0]
        )
        row.refresh_from_db()
    return None


def find_key_holder(submission: Submission) -> KeyHolder | None:
    """Return the visible run that has the submission's idempotency key, or None."""
    if submission.key is None:
        return None
    row = RunKey.objects.filter(**_scope(submission)).first()
    run = Run.objects.filter(id=row.run_id).first() if row else None
    if row is None or run is None or is_past_ttl(run):
        return None
    return KeyHolder(run, row.inputs_digest)


def _scope(submission: Submission) -> dict[str, Any]:
    return {
        "principal_id": submission.principal.id,
        "template_id": submission.template.template_id,
        "key": submission.key,
    }
