"""What a person did on a page, as coarsely as it is told: counts, and where they went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.validation.storable import storable
from runs.conversations.log import append_events
from runs.events.types import PERSON_ACTED
from runs.lifecycle.changes import NewEvent
from runs.models import Task

MAX_PLACES = 20
# What is counted of each kind of input; moves of the mouse and the ends of presses are not.
_COUNTED = {"mouse": "clicks", "wheel": "wheels", "key": "keys", "text": "texts"}


@dataclass(slots=True)
class PersonActivity:
    """Of one person since it was last told.

    Attributes:
        counts: clicks, wheels, keys, texts (pasted or composed), dialogs.
        places: origins and paths of the documents they came to, in order; no queries.
    """

    counts: Counter[str] = field(default_factory=Counter)
    places: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.counts or self.places)

    def note(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Count what was done."""
        for event in events:
            name = _COUNTED.get(event["kind"])
            if name is not None and event.get("action", "down") == "down":
                self.counts[name] += 1

    def add(self, earlier: PersonActivity) -> None:
        """Count what was done before this too."""
        self.counts.update(earlier.counts)
        self.places[:0] = earlier.places
        del self.places[MAX_PLACES:]

    def went(self, url: str) -> None:
        """Note where the page is now."""
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and len(self.places) < MAX_PLACES:
            host = parts.netloc.rpartition("@")[2]
            self.places.append(f"{parts.scheme}://{host}{parts.path}"[:500])


def record_activity(task_id: str, by: str, done: PersonActivity) -> None:
    """Write it into the audit log and the task's, also where the run that had the page is over by
    now: it may end in the moment in which the page is given back. Commits.
    """
    told = {"by": by, **done.counts}
    if done.places:
        told["navigations"] = list(done.places)
    told = storable(told)
    with transaction.atomic():
        task = Task.objects.select_for_update().filter(id=task_id).first()
        if task is None:
            return
        append_events(task_id, [NewEvent(PERSON_ACTED, told)])
        place = task.tenant_id, task.workspace_id
        record(AuditEvent("task.page_used", by, "task", task_id, *place, told))
