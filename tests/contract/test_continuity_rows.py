"""Test that every row of bad inputs of the Continuity API gets its code over MCP and over REST."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from decisions.authorization.confirmations import open_confirmation
from decisions.continuity.outcomes import open_outcome
from decisions.identity.principals import Principal
from decisions.models import Outcome
from tests.contract.bad_inputs import Row, rows
from tests.contract.continuity_calls import Ask, cannot_be_said_over_rest, over_mcp, over_rest
from tests.contract.mcp_host import Host
from tests.integration.racing import at_once
from tests.support.continuity import FORECAST, SHELL, create_decision

pytest_plugins = ["tests.support.rest_fixtures"]
TRANSPORTS = ("stdio", "http")
ALL = rows("mcp+rest:decisions")
CHAT = [row for row in ALL if row.tool == "continuity_chat"]  # test_chat_rows.py sends them
HERE = [row for row in ALL if row not in CHAT]
MARKS = ("$used", "$valid", "$parallel", "$sequence", "$unconfirmed", "$if_match")
SPECIAL = [row for row in HERE if any(mark in str(row.input) for mark in MARKS)]
PLAIN = [row for row in HERE if row not in SPECIAL]
REST = [row for row in PLAIN if cannot_be_said_over_rest(row.tool, row.input) is None]
OUTCOME = {"user_id": "alice", "outcome_status": "success", "outcome_note": ""}


@pytest.fixture
def token(principal: Principal) -> str:
    """Create decisions 1 and 4 (to confirm) and 3 (to act); return the token of 1."""
    made = {}
    for number, mode in ((1, "confirm"), (3, "act"), (4, "confirm")):
        decision = create_decision(principal, mode=mode, pk=number)
        open_outcome(decision, FORECAST)
        if mode == "confirm":
            made[number] = open_confirmation(decision, delivery="inline").clear_token
    return str(made[1])


@pytest.fixture
def mcp(host: Host) -> Iterator[Ask]:
    """Send calls over MCP, and check after the test that the server still answers."""
    ask = over_mcp(host)
    yield ask
    assert ask("continuity_get_state", {"user_id": "alice"})[0] == "OK"


@pytest.fixture
def rest(web: str, principal: Principal, client_with: Callable[..., httpx.Client]) -> Ask:
    """Send calls over REST."""
    return over_rest(client_with())


def test_every_row_is_sent() -> None:
    assert len(PLAIN) + len(SPECIAL) + len(CHAT) == len(ALL)
    assert len(PLAIN) - len(REST) <= 4
    assert len(PLAIN) > 40


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize("row", PLAIN, ids=str)
def test_a_bad_input_gets_its_code_over_mcp(mcp: Ask, row: Row) -> None:
    code, told = mcp(row.tool, row.input)
    assert code == row.expect_code, told
    assert len(str(told)) < 3000


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize("row", REST, ids=str)
def test_a_bad_input_gets_its_code_over_rest(rest: Ask, row: Row) -> None:
    code, told = rest(row.tool, row.input)
    assert code == row.expect_code, told
    assert len(str(told)) < 3000


def confirming(token: str, **changed: Any) -> dict[str, Any]:
    return {"decision_id": 1, "user_id": "alice", "confirm_token": token, **changed}


def check_special(ask: Ask, token: str) -> None:
    """Send the calls of the rows that need existing objects."""
    confirm, report = "continuity_confirm_decision", "continuity_report_outcome"
    wrong = "invalid_or_expired_confirm_token"
    assert ask(report, {**OUTCOME, "decision_id": 4})[0] == "decision_not_confirmed"
    assert ask(confirm, confirming(token, user_id="bob"))[0] == wrong
    assert ask(confirm, confirming(token))[0] == "OK"
    assert ask(confirm, confirming(token))[0] == wrong
    first = ask(report, {**OUTCOME, "decision_id": 3})
    assert first[0] == "OK"
    assert ask(report, {**OUTCOME, "decision_id": 3}) == first
    code, told = ask(report, {**OUTCOME, "decision_id": 3, "outcome_status": "failed"})
    assert (code, told["detail"]) == ("pending_outcome_not_found", "pending outcome not found")
    assert Outcome.objects.filter(status__isnull=False).count() == 1
    shell = {**SHELL, "user_id": "alice"}
    assert ask("continuity_put_shell", shell)[0] == "OK"
    stale = {**shell, "if_match": "stale"}
    assert ask("continuity_put_shell", stale)[0] == "version_conflict"


def test_a_row_that_needs_existing_objects_gets_its_code_over_mcp(mcp: Ask, token: str) -> None:
    check_special(mcp, token)


def test_a_row_that_needs_existing_objects_gets_its_code_over_rest(rest: Ask, token: str) -> None:
    check_special(rest, token)


def test_one_of_fifty_concurrent_confirmations_succeeds_over_mcp(host: Host, token: str) -> None:
    call = json.dumps(confirming(token)).encode()
    ids = [host.begin_call("continuity_confirm_decision", call) for _ in range(50)]
    answers = [host.answer_to(request_id)["result"] for request_id in ids]
    assert [answer["isError"] for answer in answers].count(False) == 1


def test_one_of_fifty_concurrent_confirmations_succeeds_over_rest(rest: Ask, token: str) -> None:
    codes = at_once([lambda: rest("continuity_confirm_decision", confirming(token))[0]] * 50)
    assert sorted(codes) == ["OK"] + ["invalid_or_expired_confirm_token"] * 49
