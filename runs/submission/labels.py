"""Change the labels of a run after its submit."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.identity.principals import Principal
from runs.models import Run, RunTerms
from runs.search.labels import check_labels
from runs.search.terms import terms_of


def label_run(
    *, principal: Principal, run: Run, add: Mapping[str, str], remove: Collection[str] = ()
) -> bool:
    """Add and remove labels of a run, of any status; return whether they changed. Commits.

    Raises:
        InvalidInput: The labels are invalid, or too many together.
    """
    principal.require("runs:write")
    with transaction.atomic():
        locked = Run.objects.select_for_update(no_key=True).get(
            id=run.id, workspace_id=principal.workspace_id
        )
        before: Mapping[str, str] = locked.labels or {}
        kept = {name: value for name, value in before.items() if name not in remove}
        labels = check_labels({**kept, **add}, where="labels")
        if labels == before:
            return False
        locked.labels = labels or None
        locked.save(update_fields=["labels"])
        RunTerms.objects.filter(run_id=locked.id).update(terms=terms_of(locked))
        scope = locked.tenant_id, locked.workspace_id
        details = {"labels": labels}
        record(AuditEvent("run.labeled", principal.id, "run", locked.id, *scope, details))
    return True
