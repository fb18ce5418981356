"""The form of a new task in the admin, for operators who paired a browser."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.test import Client

from decisions.identity.principals import Principal
from runs.live.no_page import no_page_reason
from runs.models import Task
from tests.support.browser.paired_browser import pair

LIST, NEW = "/admin/runs/task/", "/admin/runs/task/new/"


@pytest.fixture
def browser(principal: Principal) -> str:
    """Pair a browser of the operator, and return its id."""
    return pair(replace(principal, id="admin:boss")).id


def test_an_operator_chooses_a_browser_that_they_paired(
    superuser_client: Client, browser: str
) -> None:
    page = superuser_client.get(LIST).content.decode()
    assert f'<option value="{browser}">' in page
    assert "Chrome on Linux (not connected)" in page
    superuser_client.post(NEW, {"content": "Look.", "browser": browser})
    task = Task.objects.get()
    assert task.selected_client_id == browser
    assert "Chrome on Linux" in no_page_reason(task.id)


def test_the_choice_is_not_shown_without_a_paired_browser(
    superuser_client: Client, principal: Principal
) -> None:
    pair(principal)
    assert 'name="browser"' not in superuser_client.get(LIST).content.decode()
    superuser_client.post(NEW, {"content": "Look."})
    assert Task.objects.get().selected_client_id is None


@pytest.mark.parametrize("chosen", ["plc_1", "target_1", "another's"])
def test_another_browser_is_refused(
    superuser_client: Client, principal: Principal, chosen: str
) -> None:
    other = pair(principal).id
    posted = {"content": "Look.", "browser": other if chosen == "another's" else chosen}
    answer = superuser_client.post(NEW, posted, follow=True)
    assert "Not created" in answer.content.decode()
    assert not Task.objects.exists()
