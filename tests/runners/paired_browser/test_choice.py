"""Which of a caller's paired browsers a task uses."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from decisions.foundation.errors import InvalidInput, TargetNotFound
from decisions.identity.principals import Principal
from runners.models import PluginClient
from runners.paired_browser.choice import NoBrowserPaired, choose_paired_browser, split_choice
from runners.targets.targets import Caller
from tests.support.browser.paired_browser import pair

NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def caller(principal: Principal) -> Caller:
    """Return the principal as a caller."""
    return Caller.of(principal)


def chosen(principal: Principal, *browsers: dict[str, Any]) -> int:
    """Pair these browsers, and return which of them is chosen."""
    ids = [pair(principal, **fields).id for fields in browsers]
    return ids.index(choose_paired_browser(Caller.of(principal), "plugin").id)


def online(**more: Any) -> dict[str, Any]:
    """Return the fields of a connected browser."""
    return {"connection_id": "plx_1", "last_seen_at": datetime.now(UTC), **more}


def test_the_connected_browser_is_chosen(principal: Principal) -> None:
    used = {"last_used_at": NOW}
    gone = {"connection_id": "plx_2", "last_seen_at": NOW - HOUR, **used}
    assert chosen(principal, used, online(), gone) == 1


def test_of_several_the_one_used_last_is_chosen(principal: Principal) -> None:
    earlier = online(last_used_at=NOW - HOUR)
    assert chosen(principal, online(), earlier, online(last_used_at=NOW)) == 2


def test_of_several_one_that_answers_is_chosen(principal: Principal) -> None:
    assert chosen(principal, online(last_used_at=NOW, timeouts=2), online()) == 1


def test_without_a_connected_browser_the_one_used_last_is_chosen(principal: Principal) -> None:
    assert chosen(principal, {}, {"last_used_at": NOW}, {"last_used_at": NOW - HOUR}) == 1


@pytest.mark.parametrize("own", ["principal", "workspace", "tenant"])
def test_nobody_elses_browser_is_found(principal: Principal, caller: Caller, own: str) -> None:
    field = "id" if own == "principal" else f"{own}_id"
    fields: dict[str, Any] = {field: "other"}
    others = replace(principal, **fields)
    client = pair(others, **online())
    with pytest.raises(NoBrowserPaired) as refused:
        choose_paired_browser(caller, "plugin")
    assert (refused.value.retryable, "plugin_ticket" in refused.value.recovery) == (False, True)
    with pytest.raises(TargetNotFound):
        choose_paired_browser(caller, client.id)


def test_a_revoked_browser_is_not_found(principal: Principal, caller: Caller) -> None:
    client = pair(principal, revoked_at=NOW)
    with pytest.raises(TargetNotFound):
        choose_paired_browser(caller, client.id)


def test_a_request_names_a_folder_and_one_browser(principal: Principal, caller: Caller) -> None:
    first, second = pair(principal).id, pair(principal).id
    for target_id, selected, folder, client in [
        ("target_1", first, "target_1", first),
        (second, None, None, second),
        ("plugin", first, None, first),
        ("target_1", None, "target_1", None),
    ]:
        choice = split_choice(caller, target_id, selected)
        assert (choice.target_id, choice.client_id) == (folder, client)
    for named, wanted in [(first, second), (None, "target_1"), (None, "")]:
        with pytest.raises(InvalidInput):
            split_choice(caller, named, wanted)
    assert PluginClient.objects.count() == 2
