"""Why no page of a task is to be seen."""

from __future__ import annotations

from runs.models import Run, RunStatus, RunStep, StepStatus, Task

NONE_YET = "The agent has no page open now."
NOBODY_WORKS = "No page is open: the agent opens one when it works."
CLOSED = "The page was closed."
LOST = "The worker that had the page was lost, and the page with it."
GIVE_BACK = "Give it back: the agent is told, and opens it anew."
OPENED_ANEW = "The agent is told as it goes on, and opens it anew."


def no_page_reason(task_id: str) -> str:
    """Return it in words for who wants to look."""
    run = (
        Run.objects.filter(task_id=task_id, started_at__isnull=False)
        .order_by("created_at", "id")
        .last()
    )
    if run is None:
        return NOBODY_WORKS
    if run.status != RunStatus.RUNNING:
        return _ended(run)
    if run.waiting_for and _had_page(run):
        what = LOST if run.pinned_worker is None else CLOSED
        return f"{what} {GIVE_BACK if Task.objects.is_taken_over(task_id) else OPENED_ANEW}"
    return NONE_YET


def _ended(run: Run) -> str:
    if run.status == RunStatus.CANCELED:
        return "The run was canceled, and its page was closed."
    if run.status == RunStatus.FAILED:
        told = run.error or {}
        return f"The run failed, and its page was closed. {told.get('message', '')}".rstrip()
    return NOBODY_WORKS


def _had_page(run: Run) -> bool:
    waiting = RunStep.objects.filter(run_id=run.id, status=StepStatus.PENDING)
    return any((step.paused or {}).get("hadPage") for step in waiting)
