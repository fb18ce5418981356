"""What a person did on a page, as it is recorded: counts of inputs, and the pages navigated to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.foundation.validation.storable import storable
from runs.conversations.log import append_events
from runs.events.types import PERSON_ACTED
from runs.lifecycle.changes import NewEvent
from runs.models import Task

MAX_NAVIGATIONS = 20
# The counter of each kind of input. Mouse moves and releases are not counted.
_COUNTERS = {"mouse": "clicks", "wheel": "wheels", "key": "keys", "text": "texts"}


@dataclass(slots=True)
class PersonActivity:
    """The activity of one person since it was last recorded.

    Attributes:
        counts: clicks, wheels, keys, texts (pasted or composed), dialogs.
        navigations: origin and path of each document, in order; without the query.
    """

    counts: Counter[str] = field(default_factory=Counter)
    navigations: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.counts or self.navigations)

    def count(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Count input events."""
        for event in events:
            counter = _COUNTERS.get(event["kind"])
            if counter is not None and event.get("action", "down") == "down":
                self.counts[counter] += 1

    def prepend(self, earlier: PersonActivity) -> None:
        """Add activity that came before this."""
        self.counts.update(earlier.counts)
        self.navigations[:0] = earlier.navigations
        del self.navigations[MAX_NAVIGATIONS:]

    def add_navigation(self, url: str) -> None:
        """Add an http(s) document, up to MAX_NAVIGATIONS."""
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and len(self.navigations) < MAX_NAVIGATIONS:
            host = parts.netloc.rpartition("@")[2]
            self.navigations.append(f"{parts.scheme}://{host}{parts.path}"[:500])


def record_activity(task_id: str, by: str, activity: PersonActivity) -> None:
    """Record the activity in the task's log and in the audit log. Commits.

    The run of the page may have ended already: it can end while the person gives the page back.
    """
    data: dict[str, Any] = {"by": by, **activity.counts}
    if activity.navigations:
        data["navigations"] = list(activity.navigations)
    data = storable(data)
    with transaction.atomic():
        task = Task.objects.select_for_update().filter(id=task_id).first()
        if task is None:
            return
        append_events(task_id, [NewEvent(PERSON_ACTED, data)])
        record(
            AuditEvent(
                "task.page_used", by, "task", task_id, task.tenant_id, task.workspace_id, data
            )
        )
