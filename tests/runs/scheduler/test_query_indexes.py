"""The scheduler's query of every second reads no ended runs."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.models import QuerySet

from runs.models import Run
from runs.scheduler.queue_timeouts import queued_sync_runs
from runs.submission.resume import waiting_runs


@pytest.mark.django_db
@pytest.mark.parametrize("query", [waiting_runs, queued_sync_runs])
def test_it_uses_the_index_of_active_runs(query: object) -> None:
    assert callable(query)
    found: QuerySet[Run] = query()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
    assert "run_not_ended" in found.explain()
