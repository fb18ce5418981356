"""The work in the admin site: what runs now, every run's story, the workers; cancel and retry are
the only deeds.
"""

from runs.admin import dashboard, place, run_admin

__all__ = ["dashboard", "place", "run_admin"]
