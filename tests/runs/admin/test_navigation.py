"""Each list of the admin has one title: in the navigation, in the page's header and in the tab."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client, RequestFactory

from runs.admin.navigation import navigation


def items() -> list[dict[str, Any]]:
    groups = navigation(RequestFactory().get("/admin/"))
    return [item for group in groups[1:] for item in group["items"]]


@pytest.mark.django_db
def test_a_list_has_the_same_title_in_navigation_header_and_tab(superuser_client: Client) -> None:
    for item in items():
        page = superuser_client.get(item["link"]).content.decode()
        tab = re.search(r"<title>\s*(.*?)\s*\|", page, re.DOTALL)
        header = re.search(r"<h1.*?</h1>", page, re.DOTALL)
        assert tab is not None
        assert header is not None
        assert tab.group(1) == item["title"]
        assert (
            re.sub(r"<[^>]*>", " ", header.group()).split("chevron_right")[-1].strip()
            == item["title"]
        )


@pytest.mark.slow
@pytest.mark.django_db
def test_only_one_item_is_active() -> None:
    for path in ("/admin/decisions/decision/", "/admin/decisions/decision/?status=waiting"):
        groups = navigation(RequestFactory().get(path))
        active = [item["link"] for group in groups for item in group["items"] if item["active"]]
        assert active == [path]
