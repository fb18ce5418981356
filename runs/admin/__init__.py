"""The work in the admin site: what runs now, every run's story, the workers and the
browser sessions they hold; cancel, retry and close are the only deeds.
"""

from runs.admin import dashboard, place, run_admin, session_admin

__all__ = ["dashboard", "place", "run_admin", "session_admin"]
