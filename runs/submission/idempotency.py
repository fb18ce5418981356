"""Idempotency keys of submits (S0 §4.1.1): one run per (principal, template, key) while that run is
visible.

A submit with a used key is answered with the run that has it: `deduplicated` is true, and
`inputs_match` says whether its inputs are those of the first submit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from decisions.foundation.infra.preconditions import Precondition
from runs.models import Run, RunKey
from runs.queries.visibility import is_past_ttl
from runs.submission.prepare import NewRun
from runs.submission.submitted_run import SubmittedRun


class KeyHolder(NamedTuple):
    """The run that has an idempotency key, and the digest of the inputs of its submit."""

    run: Run
    inputs_digest: str

    def answer(self, new: NewRun, is_auto_mode: bool) -> SubmittedRun:
        """Return the answer to a submit whose key this run has."""
        return SubmittedRun(self.run, is_auto_mode, self.inputs_digest in new.inputs_digests)


def key_row(new: NewRun) -> RunKey:
    """Return the unsaved row of a submit's key."""
    return RunKey(**_scope(new), run_id=new.run.id, inputs_digest=new.inputs_digests[0])


def if_free(new: NewRun) -> Precondition:
    """Return the condition that no run has the submit's key."""
    where = " AND ".join(f"{column} = %s" for column in _scope(new))
    text = f"NOT EXISTS (SELECT 1 FROM runs_runkey WHERE {where})"  # noqa: S608
    return Precondition(text, tuple(_scope(new).values()))


def claim_key(new: NewRun) -> KeyHolder | None:
    """Claim the submit's idempotency key for its run, in the caller's transaction.

    Returns None, or the run that has the key already. The unique row decides between concurrent
    submits: one inserts it, the others wait for that commit.
    """
    run_id = new.run.id
    RunKey.objects.bulk_create([key_row(new)], ignore_conflicts=True)
    row = RunKey.objects.get(**_scope(new))
    while row.run_id != run_id:
        run = Run.objects.filter(id=row.run_id).first()
        if run is not None and not is_past_ttl(run):
            return KeyHolder(run, row.inputs_digest)
        # That run is past its TTL. The guard on run_id lets one of the concurrent submits have it.
        RunKey.objects.filter(id=row.id, run_id=row.run_id).update(
            run_id=run_id, inputs_digest=new.inputs_digests[0]
        )
        row.refresh_from_db()
    return None


def find_key_holder(new: NewRun) -> KeyHolder | None:
    """Return the visible run that has the submit's idempotency key, or None."""
    if new.key is None:
        return None
    row = RunKey.objects.filter(**_scope(new)).first()
    run = Run.objects.filter(id=row.run_id).first() if row else None
    if row is None or run is None or is_past_ttl(run):
        return None
    return KeyHolder(run, row.inputs_digest)


def _scope(new: NewRun) -> dict[str, Any]:
    return {
        "principal_id": new.principal.id,
        "template_id": new.run.template_id,
        "key": new.key,
    }
