"""Test the admin pages of paired browsers: pairing, the list, what a browser has open, removal."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from decisions.foundation.infra.redis import connect
from decisions.identity.principals import Principal, create_token
from decisions.models import AuditEntry
from runners.models import PluginClient
from runners.paired_browser.connections.snapshots import write_snapshots
from runners.paired_browser.pairing.registry import pair_browser_of
from runners.paired_browser.pairing.tickets import create_ticket
from tests.support.runners.protocol_browser import ABOUT, tab

LIST = "/admin/runners/pluginclient/"
TITLE = "Inbox <img src=x onerror=alert(1)>"


def pair_as(client: Client, **fields: Any) -> PluginClient:
    """Pair a browser with the form of the admin."""
    shown = client.post(f"{LIST}new/", {"owner": "me", "name": "Laptop", **fields})
    link = re.search(r'id="new-secret">(.*?)<', shown.content.decode())
    assert link, shown.content.decode()
    server, _, ticket = html.unescape(link[1]).partition("#")
    assert server == "http://testserver"
    return PluginClient.objects.get(id=pair_browser_of(ticket, ABOUT).client_id)


def show_tab(client_id: str, title: str) -> None:
    """Keep a state of a browser with one tab."""
    window = {"windowId": 1, "type": "normal", "focused": True}
    state = {"windows": [window], "groups": [], "tabs": [tab(1, title=title)]}

    async def write() -> None:
        redis = connect(blocking=False)
        await write_snapshots(redis, [(client_id, {"seq": 1, "at": 1, "state": state})])
        await redis.aclose()

    asyncio.run(write())


def page_of(client: Client, browser: PluginClient) -> str:
    return client.get(f"{LIST}{browser.id}/change/").content.decode()


def test_a_user_pairs_a_browser_with_a_link_and_sees_what_it_has_open(
    superuser_client: Client,
) -> None:
    browser = pair_as(superuser_client)
    assert (browser.principal_id, browser.paired_by) == ("admin:boss", "admin:boss")
    show_tab(browser.id, TITLE)
    listed = superuser_client.get(LIST).content.decode()
    assert "Laptop" in listed
    assert "connected" in listed
    shown = page_of(superuser_client, browser)
    assert html.escape(TITLE) in shown
    assert TITLE not in shown


def test_a_browser_is_paired_for_agent_hosts_or_a_token(superuser_client: Client) -> None:
    create_token(name="agent")
    token = re.search(r'value="(tok_\w+)"', superuser_client.get(f"{LIST}new/").content.decode())
    assert token
    assert pair_as(superuser_client, owner="local").principal_id == "local"
    assert pair_as(superuser_client, owner=token[1]).principal_id == f"token:{token[1]}"


def test_another_superuser_does_not_see_what_a_persons_browser_has_open(
    superuser_client: Client,
) -> None:
    browser = pair_as(superuser_client, owner="local")
    show_tab(browser.id, TITLE)
    other = Client()
    other.force_login(User.objects.create_superuser("other"))
    shown = page_of(other, browser)
    assert "Only the person who paired this browser" in shown
    assert html.escape(TITLE) not in shown


def test_what_a_browser_paired_by_command_has_open_needs_the_change_permission(
    principal: Principal, superuser_client: Client, staff_client: Callable[..., Client]
) -> None:
    ticket = create_ticket(principal=principal, actor="command:ann")["ticket"]
    browser = PluginClient.objects.get(id=pair_browser_of(ticket, ABOUT).client_id)
    show_tab(browser.id, TITLE)
    assert html.escape(TITLE) in page_of(superuser_client, browser)
    viewer = staff_client("runners.view_pluginclient")
    assert html.escape(TITLE) not in page_of(viewer, browser)


def test_removing_a_browser_needs_the_permission_or_the_one_who_paired_it(
    superuser_client: Client, staff_client: Callable[..., Client]
) -> None:
    browser = pair_as(superuser_client)
    viewer = staff_client("runners.view_pluginclient")
    assert viewer.post(f"{LIST}{browser.id}/remove/").status_code == 403
    assert superuser_client.get(f"{LIST}{browser.id}/remove/").status_code == 405
    assert superuser_client.post(f"{LIST}{browser.id}/remove/").status_code == 302
    browser.refresh_from_db()
    assert browser.revoked_at is not None
    assert AuditEntry.objects.get(action="plugin.revoked").actor == "admin:boss"
    superuser_client.get(LIST)  # shows the message
    assert "Laptop" not in superuser_client.get(LIST).content.decode()


@pytest.mark.parametrize("permissions", [(), ("runners.view_pluginclient",)])
def test_pairing_needs_the_permission(
    staff_client: Callable[..., Client], permissions: tuple[str, ...]
) -> None:
    client = staff_client(*permissions)
    assert client.post(f"{LIST}new/", {"owner": "me"}).status_code == 403
