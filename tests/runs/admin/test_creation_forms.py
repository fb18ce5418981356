"""Lists of the admin that link to a form for a new row, and the messages of such a form."""

from __future__ import annotations

import pytest
from django.test import Client

LABELS = {
    "decisions/policyrule": ("New rule", "Next: what it does"),
    "decisions/token": ("New token", "Create token"),
    "runners/executiontarget": ("New project workspace", "Create target"),
    "runs/webhook": ("New webhook", "Create webhook"),
}


@pytest.mark.parametrize("model_path", LABELS)
def test_a_list_links_to_the_form_and_the_form_back_to_the_list(
    superuser_client: Client, model_path: str
) -> None:
    list_url, form_url = f"/admin/{model_path}/", f"/admin/{model_path}/new/"
    new_label, submit_label = LABELS[model_path]
    page = superuser_client.get(list_url).content.decode()
    assert f'href="{form_url}"' in page
    assert new_label in page
    page = superuser_client.get(form_url).content.decode()
    assert submit_label in page
    assert f'href="{list_url}">Cancel' in page
    assert 'name="csrfmiddlewaretoken"' in page


@pytest.mark.parametrize("model_path", LABELS)
def test_a_form_shows_an_error_beside_its_field(superuser_client: Client, model_path: str) -> None:
    page = superuser_client.post(f"/admin/{model_path}/new/", {"nothing": "x"}).content.decode()
    assert 'class="cty-error">This field is required.' in page
