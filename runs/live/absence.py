"""Why no page of a task is to be seen."""

from __future__ import annotations

from runs.models import Run, RunStatus, RunStep, StepStatus
from runs.resuming import TAKEOVER

NONE_YET = "The agent has no page open now."
NOBODY_WORKS = "No page is open: the agent opens one when it works."
LOST = (
    "The worker that had the page was lost, and the page with it. Give the page back: the agent is"
    " told, and opens it anew."
)


def why_no_page(task_id: str) -> str:
    """Return it in words for who wants to look."""
    under_way = Run.objects.filter(task_id=task_id, status=RunStatus.RUNNING).first()
    if under_way is None:
        return NOBODY_WORKS
    if (under_way.waiting_for or {}).get("type") == TAKEOVER and under_way.pinned_worker is None:
        waiting = RunStep.objects.filter(run_id=under_way.id, status=StepStatus.PENDING)
        if any((step.paused or {}).get("hadPage") for step in waiting):
            return LOST
    return NONE_YET
