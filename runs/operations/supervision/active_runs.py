"""Count the active runs, for `manage.py status` and for the decision to stop an idle stack."""

from __future__ import annotations

from django.db import Error, close_old_connections
from django.db.models import Count

from runs.models import Run


def count_active_runs() -> dict[str, int]:
    """Return the numbers of queued and running runs of all workspaces, by status."""
    found = Run.objects.filter(ended_at__isnull=True).values_list("status").annotate(Count("id"))
    return {"queued": 0, "running": 0, **dict(found.order_by())}


def is_work_left() -> bool:
    """Return whether a run is queued or running; True if the database does not answer."""
    close_old_connections()
    try:
        return any(count_active_runs().values())
    except Error:
        return True
