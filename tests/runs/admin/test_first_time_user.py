"""What lists and pages of the admin show to a first-time user."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from decisions.identity.principals import create_token
from decisions.models import Token
from runs.models import Run, Task


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/admin/decisions/decision/?status=waiting", "No confirmation is waiting"),
        ("/admin/runs/task/?status=error", "No results"),
        ("/admin/artifacts/artifact/", "No rows yet"),
    ],
)
def test_an_empty_list_has_no_add_link_where_rows_cannot_be_added(
    superuser_client: Client, path: str, text: str
) -> None:
    page = superuser_client.get(path).content.decode()
    assert text in page
    assert "Create a new item" not in page


def test_the_run_of_a_task_links_to_the_task(
    superuser_client: Client, make_task: Callable[..., str]
) -> None:
    task_id = make_task("say hi")
    page = superuser_client.get(f"/admin/runs/run/{Run.objects.get().id}/change/").content.decode()
    assert f'href="/admin/runs/task/{task_id}/change/"' in page


def test_the_creator_of_a_task_fits_in_its_column(
    superuser_client: Client, make_task: Callable[..., str]
) -> None:
    create_token(name="laptop")
    token = Token.objects.get()
    Task.objects.filter(id=make_task("say hi")).update(principal_id=f"token:{token.id}")
    page = superuser_client.get("/admin/runs/task/").content.decode()
    assert f'href="/admin/decisions/token/{token.id}/change/"' in page
    assert f"token:{token.id}" not in page
