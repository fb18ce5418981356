"""Read the state of a run that waits for a person's confirmation, and answer it.

`confirm` answers as a person does who saw the whole call.
"""

from __future__ import annotations

from collections.abc import Callable

from decisions.authorization import confirmations
from decisions.authorization.sealed_arguments import CannotBeShown, shown_digest
from decisions.models import Confirmation, Decision
from runs.models import Run, RunEvent

# The scopes of a credential that confirms calls of others.
CONFIRMER = frozenset({"continuity:write", "confirm"})


def confirm(*, decision_id: int, by: str, how: str) -> Confirmation:
    return confirmations.confirm(
        decision_id=decision_id, by=by, how=how, shown=digest_shown(decision_id)
    )


def digest_shown(decision_id: int) -> str | None:
    """Return the digest that a person reads on the last page; None if there is none."""
    decision = Decision.objects.filter(pk=decision_id).first()
    try:
        return None if decision is None else shown_digest(decision)
    except CannotBeShown:
        return None


def reload_run(run: Run) -> Run:
    return Run.objects.get(id=run.id)


def decision_id(run: Run) -> int:
    found: int = (reload_run(run).waiting_for or {})["decisionId"]
    return found


def answer_confirmation(run: Run, respond: Callable[..., Confirmation] = confirm) -> None:
    respond(decision_id=decision_id(run), by="admin:ann", how="admin")


def event_types(run: Run) -> list[str]:
    return list(
        RunEvent.objects.filter(run_id=run.id).order_by("seq").values_list("type", flat=True)
    )
