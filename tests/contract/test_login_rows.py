"""Test that the rows of bad inputs about `login_keep_session` get their codes over MCP and REST."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from decisions.identity.principals import Principal
from runs.models import Run, RunSecret
from tests.contract import rest_calls
from tests.contract.bad_inputs import FOLDER, Row, encode, rows
from tests.contract.mcp_host import PrincipalTransport, StdioHost, code_of_answer, structured
from tests.support.rest.rest import code_of, json_of

LINES = enumerate((FOLDER / "bad_inputs_login.jsonl").read_text().splitlines(), 1)
ROWS = [Row(**json.loads(line), source=f"login:{number}") for number, line in LINES]
ROWS += [row for row in rows("mcp+rest:runs") if "login_keep_session" in str(row.input)]
REMOTE = [row for row in ROWS if row.is_remote]
ENDINGS = ("run:", "TPL_")  # the run ends with these codes; the other rows refuse the submission
FAILING = [row for row in ROWS if row.expect_code.startswith(ENDINGS)]
REFUSED = [row for row in ROWS if row not in REMOTE + FAILING]


def with_site(row: Row, site: str) -> Row:
    """Return the row with the tests' site in place of fixtures.test."""
    text = json.dumps(row.input).replace("http://fixtures.test", site)
    return replace(row, input=json.loads(text))


@pytest.fixture(params=["mcp", "rest"])
def call(
    request: pytest.FixtureRequest, principal: Principal
) -> Iterator[Callable[[Row], tuple[str, dict[str, Any]]]]:
    """Send a row over MCP or REST and return the code and the run, if one exists."""
    if request.param == "mcp":
        host = StdioHost(PrincipalTransport(principal))

        def over_mcp(row: Row) -> tuple[str, dict[str, Any]]:
            answer = host.call(row.tool, encode(row.input))
            code = code_of_answer(answer)
            return code, structured(answer) if code == "OK" else {}

        yield over_mcp
        host.close()
        return
    api: httpx.Client = request.getfixturevalue("api")

    def over_rest(row: Row) -> tuple[str, dict[str, Any]]:
        answer = rest_calls.send(api, row)
        code = code_of(answer)
        return code, json_of(answer) if code == "OK" else {}

    yield over_rest


Call = Callable[[Row], tuple[str, dict[str, Any]]]


def test_there_are_rows_of_every_kind() -> None:
    assert len(FAILING) >= 3
    assert len(REFUSED) >= 13


@pytest.mark.parametrize("row", REFUSED, ids=str)
def test_a_bad_login_is_refused_before_anything_is_stored(
    call: Call, members_site: str, row: Row
) -> None:
    code, _ = call(with_site(row, members_site))
    assert code == row.expect_code
    assert not Run.objects.exists()
    assert not RunSecret.objects.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("background_worker")
@pytest.mark.parametrize("row", FAILING, ids=str)
def test_a_login_that_cannot_work_ends_with_its_code(
    call: Call, members_site: str, row: Row
) -> None:
    _, run = call(with_site(row, members_site))
    assert run["status"] == "failed"
    assert run["error"]["errorCode"] == row.expect_code.removeprefix("run:")
    assert run["error"]["recovery"]
    assert run["ownsSession"] is False
    assert not RunSecret.objects.exists()


@pytest.mark.parametrize("row", REMOTE, ids=str)
def test_a_remote_caller_may_not_log_in(
    client_with: Callable[..., httpx.Client], remote: Principal, row: Row
) -> None:
    host = StdioHost(PrincipalTransport(remote))
    assert code_of_answer(host.call(row.tool, encode(row.input))) == row.expect_code
    host.close()
    assert code_of(rest_calls.send(client_with(trust="remote"), row)) == row.expect_code
    assert not Run.objects.exists()
