"""The work in the admin site: what runs now, every run's story, the workers and the
browser sessions they hold, who is told of ends; cancel, retry, close, talking
with the agent and what concerns webhooks are the only deeds.
"""

from runs.admin import dashboard, session_admin, webhook_admin, workers
from runs.admin.runs import admin as run_admin
from runs.admin.tasks import admin as task_admin

__all__ = ["dashboard", "run_admin", "session_admin", "task_admin", "webhook_admin", "workers"]
