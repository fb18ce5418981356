"""The work in the admin site: what runs now, every run's story, the workers and the
browser sessions they hold, who is told of ends; cancel, retry, close, talking
with the agent and what concerns webhooks are the only deeds.
"""

from runs.admin import dashboard, place, run_admin, session_admin, task_admin, webhook_admin

__all__ = ["dashboard", "place", "run_admin", "session_admin", "task_admin", "webhook_admin"]
