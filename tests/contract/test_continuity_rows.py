"""Test that every row of bad inputs of the Continuity API gets its code over MCP and over REST."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from decisions.authorization.confirmations import open_confirmation
from decisions.identity.principals import Principal, create_token
from decisions.memory.outcomes import open_outcome
from decisions.models import Decision, Outcome
from tests.contract.bad_inputs import Row, over_both_apis, rows
from tests.contract.continuity_calls import (
    SendCall,
    over_mcp,
    over_rest,
    reason_not_sendable_over_rest,
)
from tests.contract.mcp_http_host import WebHost
from tests.support.decisions.continuity import FORECAST, SHELL, create_decision

ROWS = rows("mcp+rest:decisions")
DIRECTIVES = ("$used", "$valid", "$parallel", "$sequence", "$unconfirmed", "$if_match")
PLAIN = [row for row in ROWS if not any(name in str(row.input) for name in DIRECTIVES)]
OUTCOME = {"user_id": "alice", "outcome_status": "success", "outcome_note": ""}


def cases() -> list[Any]:
    """Return the rows that need no existing object over both APIs, as far as HTTP can send them."""
    return [
        case
        for case in over_both_apis(PLAIN, rest=4, mcp=1)
        if case.values[0] == "mcp" or reason_left_out(case.values[1]) is None
    ]


def reason_left_out(row: Row) -> str | None:
    return reason_not_sendable_over_rest(row.tool, row.input)


@pytest.fixture
def token(principal: Principal) -> str:
    """Create decisions 1 and 4 (to confirm) and 3 (to act); return the token of 1."""
    tokens = {}
    for number, mode in ((1, "confirm"), (3, "act"), (4, "confirm")):
        decision = create_decision(principal, mode=mode, pk=number)
        open_outcome(decision, FORECAST)
        if mode == "confirm":
            tokens[number] = open_confirmation(decision, delivery="inline").clear_token
    return str(tokens[1])


@pytest.fixture(params=["mcp", "rest"])
def send_call(
    request: pytest.FixtureRequest, web: str, client_with: Callable[..., httpx.Client]
) -> Iterator[SendCall]:
    """Send calls over an API, and check after the test that the server still answers."""
    if request.param == "rest":
        yield (send := over_rest(client_with()))
    else:
        host = WebHost(web, create_token(name="host", trust="local"))
        yield (send := over_mcp(host))
    assert send("continuity_get_state", {"user_id": "alice"})[0] == "OK"
    if request.param == "mcp":
        host.close()


def test_most_rows_are_sent() -> None:
    assert len([row for row in PLAIN if reason_left_out(row)]) <= 4
    assert len(PLAIN) > 40


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize(("send_call", "row"), cases(), indirect=["send_call"])
def test_a_bad_input_gets_its_code(send_call: SendCall, row: Row) -> None:
    code, answer = send_call(row.tool, row.input)
    assert code == row.expect_code, answer
    assert len(str(answer)) < 3000
    assert Decision.objects.count() == 3


def test_a_row_that_needs_existing_objects_gets_its_code(send_call: SendCall, token: str) -> None:
    confirm, report = "continuity_confirm_decision", "continuity_report_outcome"
    wrong = "invalid_or_expired_confirm_token"
    arguments = {"decision_id": 1, "user_id": "alice", "confirm_token": token}
    assert send_call(report, {**OUTCOME, "decision_id": 4})[0] == "decision_not_confirmed"
    assert send_call(confirm, {**arguments, "user_id": "bob"})[0] == wrong
    assert send_call(confirm, arguments)[0] == "OK"
    assert send_call(confirm, arguments)[0] == wrong
    first = send_call(report, {**OUTCOME, "decision_id": 3})
    assert first[0] == "OK"
    assert send_call(report, {**OUTCOME, "decision_id": 3}) == first
    code, error = send_call(report, {**OUTCOME, "decision_id": 3, "outcome_status": "failed"})
    assert (code, error["detail"]) == ("pending_outcome_not_found", "pending outcome not found")
    assert Outcome.objects.filter(status__isnull=False).count() == 1
    shell = {**SHELL, "user_id": "alice"}
    assert send_call("continuity_put_shell", shell)[0] == "OK"
    stale = {**shell, "if_match": "stale"}
    assert send_call("continuity_put_shell", stale)[0] == "version_conflict"
