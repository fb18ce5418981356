"""Why a task has no page to show, as text for its viewers."""

from __future__ import annotations

from runners.models import PluginClient
from runs.models import Run, RunStatus, RunStep, StepStatus, Task

NO_PAGE = "The agent has no page open now."
NOT_RUNNING = "No page is open: the agent opens one when it runs."
CLOSED = "The page was closed."
LOST = "The page was lost with its worker."
GIVE_BACK = "Give it back: the agent is informed and opens it again."
IN_PAIRED_BROWSER = (
    "The agent works in the paired browser “{}”: watch it there. You can take over, give back and"
    " stop here and there."
)
REOPENS = "The agent is informed when it continues, and opens it again."


def no_page_reason(task_id: str) -> str:
    """Return why the task has no page now."""
    if (browser := _paired_browser(task_id)) is not None:
        return IN_PAIRED_BROWSER.format(browser)
    run = (
        Run.objects.filter(task_id=task_id, started_at__isnull=False)
        .order_by("created_at", "id")
        .last()
    )
    if run is None:
        return NOT_RUNNING
    if run.status != RunStatus.RUNNING:
        return _after_end(run)
    if run.waiting_for and _had_page(run):
        what = LOST if run.pinned_worker is None else CLOSED
        return f"{what} {GIVE_BACK if Task.objects.is_taken_over(task_id) else REOPENS}"
    return NO_PAGE


def _paired_browser(task_id: str) -> str | None:
    """Return the name of the paired browser that the task acts in, or None."""
    selected = Task.objects.filter(id=task_id).values_list("selected_client_id", flat=True).first()
    if selected is None:
        return None
    name = PluginClient.objects.filter(id=selected).values_list("name", flat=True).first()
    return name or selected


def _after_end(run: Run) -> str:
    if run.status == RunStatus.CANCELED:
        return "The run was canceled, and its page was closed."
    if run.status == RunStatus.FAILED:
        error = run.error or {}
        return f"The run failed, and its page was closed. {error.get('message', '')}".rstrip()
    return NOT_RUNNING


def _had_page(run: Run) -> bool:
    waiting = RunStep.objects.filter(run_id=run.id, status=StepStatus.PENDING)
    return any((step.paused or {}).get("hadPage") for step in waiting)
