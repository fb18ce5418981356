"""A list of the admin makes as many queries for fifty rows as for ten."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs.models import Run
from tests.support.admin.every_page import lists, rows_of_every_kind

MOST = 25  # queries of one list


def queries_of(client: Client, path: str) -> int:
    """Return how many queries a page makes."""
    with CaptureQueriesContext(connection) as queries:
        assert client.get(path).status_code == 200, path
    return len(queries)


@pytest.mark.slow
def test_the_number_of_queries_does_not_depend_on_the_number_of_rows(
    superuser_client: Client,
    make_run_with_steps: Callable[..., Run],
    make_artifact: Callable[..., str],
    make_task: Callable[..., str],
    tmp_path: Path,
) -> None:
    paths = ["/admin/", *lists()]
    found = []
    for count in (10, 40):
        rows_of_every_kind(make_run_with_steps, make_artifact, make_task, tmp_path, count=count)
        for path in paths:  # what is cached afterwards is not counted
            superuser_client.get(path)
        found.append({path: queries_of(superuser_client, path) for path in paths})
    ten, fifty = found
    assert fifty == ten
    assert {path: count for path, count in fifty.items() if count > MOST} == {}
