"""The periods of the statistics: their lengths, how long each is kept, and adding to their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Q

from decisions.foundation.infra.batches import BATCH_SIZE, run_in_batches
from runs.models import RunStatistic

ALL = ""  # all workspaces, all templates
# Lengths of periods in seconds, and how long they are kept.
KEPT = {
    60: timedelta(minutes=75),
    300: timedelta(hours=7),
    900: timedelta(hours=26),
    7200: timedelta(days=8),
    21600: timedelta(days=32),
}
KINDS = 40  # kinds of steps of one row; further ones are counted as OTHER
OTHER = "other"
_COUNTERS = ("durations", "waits", "steps")
_UNIQUE = ["resolution_s", "workspace_id", "template_id", "at"]
_MAXIMA = ("queued", "oldest_ms")
Key = tuple[int, str, str, datetime]  # resolution, workspace, template, start


@dataclass
class Additions:
    """What is to be added to the rows of the periods."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    rows: dict[Key, dict[str, Any]] = field(default_factory=dict)

    def add(
        self, at: datetime, workspace_id: str, template_id: str, **values: int | Counter[str]
    ) -> None:
        """Add values of a moment to all periods that contain it and are still kept, each for the
        workspace and the template, for one of them, and for all.
        """
        for workspace in {workspace_id, ALL}:
            for template in {template_id, ALL}:
                self.add_exactly(at, workspace, template, **values)

    def add_exactly(
        self, at: datetime, workspace_id: str, template_id: str, **values: int | Counter[str]
    ) -> None:
        """Add values to the rows of this workspace and template alone."""
        for resolution_s, kept in KEPT.items():
            if at >= self.now - kept:
                key = (resolution_s, workspace_id, template_id, start_of(at, resolution_s))
                _merge(self.rows.setdefault(key, {}), values)

    def write(self) -> None:
        """Add to the rows, in the caller's transaction. Rows are locked in one order, so that
        concurrent writers do not deadlock.
        """
        if not self.rows:
            return
        keys = sorted(self.rows)
        RunStatistic.objects.bulk_create(
            (
                RunStatistic(
                    resolution_s=key[0], workspace_id=key[1], template_id=key[2], at=key[3]
                )
                for key in keys
            ),
            ignore_conflicts=True,
        )
        changed = []
        for row in _locked(keys):
            values = self.rows.get((row.resolution_s, row.workspace_id, row.template_id, row.at))
            if values is not None:
                _apply(row, values)
                changed.append(row)
        # The rows exist and are locked: an upsert writes many of them faster than an UPDATE.
        RunStatistic.objects.bulk_create(
            changed,
            update_conflicts=True,
            unique_fields=_UNIQUE,
            update_fields=sorted({name for values in self.rows.values() for name in values}),
        )


def _locked(keys: list[Key]) -> list[RunStatistic]:
    wanted = Q()
    for resolution_s in {key[0] for key in keys}:
        starts = {key[3] for key in keys if key[0] == resolution_s}
        wanted |= Q(resolution_s=resolution_s, at__in=starts)
    rows = RunStatistic.objects.select_for_update().filter(
        wanted,
        workspace_id__in={key[1] for key in keys},
        template_id__in={key[2] for key in keys},
    )
    return list(rows.order_by("resolution_s", "workspace_id", "template_id", "at"))


def _merge(row: dict[str, Any], values: Mapping[str, int | Counter[str]]) -> None:
    for name, value in values.items():
        if name in _MAXIMA:
            row[name] = max(row.get(name, 0), value)
        elif isinstance(value, Counter):
            row.setdefault(name, Counter()).update(value)
        else:
            row[name] = row.get(name, 0) + value


def _apply(row: RunStatistic, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        before = getattr(row, name)
        if name in _MAXIMA:
            setattr(row, name, max(before, value))
        elif name in _COUNTERS:
            setattr(row, name, _added(before, value))
        else:
            setattr(row, name, before + value)


def _added(before: Mapping[str, int], more: Counter[str]) -> dict[str, int]:
    total = Counter(before)
    total.update(more)
    if len(total) <= KINDS * 10:
        return dict(total)
    kept = dict(total.most_common(KINDS))
    return kept | {OTHER: kept.get(OTHER, 0) + total.total() - sum(kept.values())}


def start_of(at: datetime, resolution_s: int) -> datetime:
    """Return the start of the period that contains a moment."""
    seconds = int(at.timestamp())
    return datetime.fromtimestamp(seconds - seconds % resolution_s, UTC)


def delete_old_statistics() -> int:
    """Delete the rows of periods that are not kept any more; return how many. Commits."""
    now, deleted = datetime.now(UTC), 0
    for resolution_s, kept in KEPT.items():
        old = RunStatistic.objects.filter(resolution_s=resolution_s, at__lt=now - kept)

        def delete_some(rows: Any = old) -> int:
            ids = list(rows.values_list("pk", flat=True)[:BATCH_SIZE])
            return int(RunStatistic.objects.filter(pk__in=ids).delete()[0])

        deleted += run_in_batches(delete_some)
    return deleted
