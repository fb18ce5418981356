"""Read the state of a run that waits for a person's confirmation, and answer it."""

from __future__ import annotations

from collections.abc import Callable

from decisions.authorization.confirmations import confirm
from decisions.models import Confirmation
from runs.models import Run, RunEvent


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
