"""Admin pages of runs, tasks, sessions, webhooks and workers; the dashboard and the sidebar."""

from runs.admin import dashboard, decision_story, session_admin, webhook_admin, workers
from runs.admin.runs import admin as run_admin
from runs.admin.tasks import admin as task_admin

__all__ = [
    "dashboard",
    "decision_story",
    "run_admin",
    "session_admin",
    "task_admin",
    "webhook_admin",
    "workers",
]
