"""The work in the admin site: what runs now, every run's story, the workers, who is told of ends;
cancel, retry and what concerns webhooks are the only deeds.
"""

from runs.admin import dashboard, place, run_admin, webhook_admin

__all__ = ["dashboard", "place", "run_admin", "webhook_admin"]
