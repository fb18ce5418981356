"""Lists of the admin that link to a form for a new row, and the messages of such a form."""

from __future__ import annotations

import pytest
from django.test import Client

pytest_plugins = ["tests.support.admin_fixtures"]

MADE = {
    "decisions/policyrule": ("New rule", "Create rule"),
    "decisions/token": ("New token", "Create token"),
    "runners/executiontarget": ("New project workspace", "Create target"),
    "runs/webhook": ("New webhook", "Create webhook"),
}


@pytest.mark.parametrize("what", MADE)
def test_a_list_links_to_the_form_and_the_form_back_to_the_list(
    superuser_client: Client, what: str
) -> None:
    listed, form = f"/admin/{what}/", f"/admin/{what}/new/"
    new, make = MADE[what]
    page = superuser_client.get(listed).content.decode()
    assert f'href="{form}"' in page
    assert new in page
    page = superuser_client.get(form).content.decode()
    assert make in page
    assert f'href="{listed}">Cancel' in page
    assert 'name="csrfmiddlewaretoken"' in page


@pytest.mark.parametrize("what", MADE)
def test_a_form_shows_an_error_beside_its_field(superuser_client: Client, what: str) -> None:
    page = superuser_client.post(f"/admin/{what}/new/", {"nothing": "x"}).content.decode()
    assert 'class="cty-error">This field is required.' in page
