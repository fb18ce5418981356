"""Test that every row of bad inputs of the Continuity API gets its code over MCP and over REST."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from decisions.authorization.confirmations import open_confirmation
from decisions.identity.principals import Principal
from decisions.memory.outcomes import open_outcome
from decisions.models import Outcome
from tests.contract.bad_inputs import Row, in_samples, rows
from tests.contract.continuity_calls import (
    SendCall,
    over_mcp,
    over_rest,
    reason_not_sendable_over_rest,
)
from tests.contract.mcp_host import Host
from tests.support.decisions.continuity import FORECAST, SHELL, create_decision
from tests.support.runs.concurrent_calls import at_once

ALL = rows("mcp+rest:decisions")
CHAT = [row for row in ALL if row.tool == "continuity_chat"]  # test_chat_rows.py sends them
ROWS = [row for row in ALL if row not in CHAT]
DIRECTIVES = ("$used", "$valid", "$parallel", "$sequence", "$unconfirmed", "$if_match")
SPECIAL = [row for row in ROWS if any(directive in str(row.input) for directive in DIRECTIVES)]
PLAIN = [row for row in ROWS if row not in SPECIAL]
REST = [row for row in PLAIN if reason_not_sendable_over_rest(row.tool, row.input) is None]
OUTCOME = {"user_id": "alice", "outcome_status": "success", "outcome_note": ""}


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


@pytest.fixture
def mcp(host: Host) -> Iterator[SendCall]:
    """Send calls over MCP, and check after the test that the server still answers."""
    send_call = over_mcp(host)
    yield send_call
    assert send_call("continuity_get_state", {"user_id": "alice"})[0] == "OK"


@pytest.fixture
def rest(web: str, principal: Principal, client_with: Callable[..., httpx.Client]) -> SendCall:
    """Send calls over REST."""
    return over_rest(client_with())


def test_every_row_is_sent() -> None:
    assert len(PLAIN) + len(SPECIAL) + len(CHAT) == len(ALL)
    assert len(PLAIN) - len(REST) <= 4
    assert len(PLAIN) > 40


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize("row", in_samples(PLAIN, each=1))
def test_a_bad_input_gets_its_code_over_mcp(mcp: SendCall, row: Row) -> None:
    code, answer = mcp(row.tool, row.input)
    assert code == row.expect_code, answer
    assert len(str(answer)) < 3000


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize("row", in_samples(REST, each=4))
def test_a_bad_input_gets_its_code_over_rest(rest: SendCall, row: Row) -> None:
    code, answer = rest(row.tool, row.input)
    assert code == row.expect_code, answer
    assert len(str(answer)) < 3000


def confirm_arguments(token: str, **changed: Any) -> dict[str, Any]:
    return {"decision_id": 1, "user_id": "alice", "confirm_token": token, **changed}


def check_special(send_call: SendCall, token: str) -> None:
    """Send the calls of the rows that need existing objects."""
    confirm, report = "continuity_confirm_decision", "continuity_report_outcome"
    wrong = "invalid_or_expired_confirm_token"
    assert send_call(report, {**OUTCOME, "decision_id": 4})[0] == "decision_not_confirmed"
    assert send_call(confirm, confirm_arguments(token, user_id="bob"))[0] == wrong
    assert send_call(confirm, confirm_arguments(token))[0] == "OK"
    assert send_call(confirm, confirm_arguments(token))[0] == wrong
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


def test_a_row_that_needs_existing_objects_gets_its_code_over_mcp(
    mcp: SendCall, token: str
) -> None:
    check_special(mcp, token)


def test_a_row_that_needs_existing_objects_gets_its_code_over_rest(
    rest: SendCall, token: str
) -> None:
    check_special(rest, token)


def test_one_of_fifty_concurrent_confirmations_succeeds_over_mcp(host: Host, token: str) -> None:
    call = json.dumps(confirm_arguments(token)).encode()
    ids = [host.start_call("continuity_confirm_decision", call) for _ in range(50)]
    answers = [host.answer_to(request_id)["result"] for request_id in ids]
    assert [answer["isError"] for answer in answers].count(False) == 1


@pytest.mark.slow
def test_one_of_fifty_concurrent_confirmations_succeeds_over_rest(
    rest: SendCall, token: str
) -> None:
    codes = at_once([lambda: rest("continuity_confirm_decision", confirm_arguments(token))[0]] * 50)
    assert sorted(codes) == ["OK"] + ["invalid_or_expired_confirm_token"] * 49
