"""Test `manage.py plugin_ticket`: whose browser its ticket pairs."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from decisions.identity.principals import Principal, create_token
from decisions.models import Token
from runners.models import PluginClient
from runners.paired_browser.pairing.registry import pair_browser_of
from runs.management.commands import plugin_ticket
from tests.support.runners.protocol_browser import ABOUT


@pytest.fixture(autouse=True)
def prepared_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the test database as it is."""
    monkeypatch.setattr(plugin_ticket, "prepare_home", lambda: None)


def pair(**options: Any) -> PluginClient:
    """Pair a browser with the ticket that the command prints."""
    printed = StringIO()
    call_command("plugin_ticket", stdout=printed, stderr=StringIO(), **options)
    return PluginClient.objects.get(id=pair_browser_of(printed.getvalue().strip(), ABOUT).client_id)


def test_a_ticket_pairs_a_browser_for_this_machines_user_or_a_token(principal: Principal) -> None:
    create_token(name="agent")
    token_id = Token.objects.get().id
    mine = pair()
    assert (mine.principal_id, mine.name) == ("local", "Chrome on Linux")
    assert mine.paired_by.startswith("command:")
    assert pair(token=token_id, name="Agent's").principal_id == f"token:{token_id}"


def test_an_unknown_token_is_refused(principal: Principal) -> None:
    refused = StringIO()
    with pytest.raises(SystemExit):
        call_command("plugin_ticket", token="tok_x", stdout=StringIO(), stderr=refused)
    assert "There is no valid token tok_x." in refused.getvalue()
