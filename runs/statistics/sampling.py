"""Observe the load: the taken slots, the length of the queue and the age of its oldest run.

One scheduler at a time observes it: a compare-and-set of the time of the last observation.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.db.models import Count, Min

from runs.models import LoadSample, Run, RunStatus, Slot
from runs.statistics.periods import ALL, Additions

EVERY_S = 10.0
LONGEST_S = 60.0  # a longer time since the last observation was not observed
_ROW = 1
_MS = timedelta(milliseconds=1)


def sample_load() -> bool:
    """Add the present load to the statistics, unless that was done less than EVERY_S ago; return
    whether it was added. Commits; safe to run concurrently.
    """
    now = datetime.now(UTC)
    with transaction.atomic():
        elapsed_ms = _claim(now)
        if elapsed_ms is None:
            return False
        additions = Additions(now)
        additions.add(now, ALL, ALL, sampled_ms=elapsed_ms)
        for (workspace_id, template_id), number in _taken_slots().items():
            additions.add(now, workspace_id, template_id, slot_ms=number * elapsed_ms)
        _add_queue(additions, now)
        additions.write()
    return True


def _claim(now: datetime) -> int | None:
    """Claim the time since the last observation, in milliseconds; None if it is too short."""
    row, is_first = LoadSample.objects.get_or_create(pk=_ROW, defaults={"sampled_at": now})
    elapsed_s = (now - row.sampled_at).total_seconds()
    is_set_back = elapsed_s < -LONGEST_S  # the clock was
    if is_first or (elapsed_s < EVERY_S * 0.9 and not is_set_back):
        return None
    same = LoadSample.objects.filter(pk=_ROW, sampled_at=row.sampled_at)
    if not same.update(sampled_at=now) or is_set_back:
        return None
    return round(min(elapsed_s, LONGEST_S) * 1000)


def _taken_slots() -> Counter[tuple[str, str]]:
    ids = list(Slot.objects.filter(run_id__isnull=False).values_list("run_id", flat=True))
    runs = Run.objects.filter(id__in=ids).values_list("workspace_id", "template_id")
    return Counter((workspace_id, template_id) for workspace_id, template_id in runs)


def _add_queue(additions: Additions, now: datetime) -> None:
    # By the index of runs that have not ended.
    waiting = Run.objects.filter(ended_at__isnull=True, status=RunStatus.QUEUED, ready=True)
    groups = waiting.values_list("workspace_id", "template_id").annotate(
        number=Count("id"), oldest=Min("created_at")
    )
    total: Counter[tuple[str, str]] = Counter()
    oldest: dict[tuple[str, str], int] = {}
    for workspace_id, template_id, number, since in groups:
        age_ms = max(0, round((now - since) / _MS))
        for key in {
            (workspace_id, template_id),
            (workspace_id, ALL),
            (ALL, template_id),
            (ALL, ALL),
        }:
            total[key] += number
            oldest[key] = max(oldest.get(key, 0), age_ms)
    for key, number in total.items():
        additions.add_exactly(now, *key, queued=number, oldest_ms=oldest[key])
