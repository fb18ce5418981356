"""Test that every row of bad inputs gets its code over REST and over MCP, and changes nothing."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from django.db.models import F

from artifacts.models import Artifact
from decisions.identity.principals import Principal, TrustLevel, create_token
from decisions.models import AuditEntry
from runners.browser.session.refused_requests import LATE_EVENT_SECONDS
from runners.models import BrowserSession
from runners.network.proxy import EgressProxy, Stream
from runners.network.socks5 import Destination
from runs.models import Run
from tests.contract import rest_calls
from tests.contract.bad_inputs import Row, encode, over_both_apis, raw_line, rows
from tests.contract.egress_rows import (
    FixturesSite,
    check_item,
    fixtures_site,  # noqa: F401  (a fixture)
    is_about_egress,
)
from tests.contract.mcp_host import Host, code_of_answer, structured
from tests.contract.mcp_http_host import WebHost
from tests.contract.rest_calls import reason_not_sendable, request_of, rest_rows, send_raw_request
from tests.support.rest.rest import code_of

LEFT_OUT = {"login_keep_session": "test_login_rows.py sends them"}
OTHER_FORMS = {"$sequence", "$parallel", "$headers", "$raw_body", "$raw_hex"}  # of an input
OBJECTS = ("run_ok", "run_canceled", "run_expired", "run_of", "run_running", "art_", "sess_")
STATUS_OF = {
    "OK": {200, 202},
    "INVALID_PARAMETER": {400, 413, 416},
    "NOT_FOUND": {404},
    "RUN_NOT_FOUND": {404},
    "TASK_NOT_FOUND": {404},
    "ARTIFACT_NOT_FOUND": {404},
    "ARTIFACT_EXPIRED": {410},
    "METHOD_NOT_ALLOWED": {405},
}
SEVERAL_CALLS = {"$parallel": "concurrent", "$cancel_while": "cancel", "$sequence": "repeated key"}
LATE_SECONDS = 3 * LATE_EVENT_SECONDS  # longer than a read that does not wait for the socket
ALL = rows("mcp+rest:runs")


def reason_left_out(api: str, row: Row) -> str | None:
    """Return why these tests do not send a row over an API, or None."""
    text = str(row.input)
    listed = next((reason for substring, reason in LEFT_OUT.items() if substring in text), None)
    if listed is not None:
        return listed
    if api == "mcp":
        return "content encodings are HTTP's alone" if "$headers" in row.input else None
    return None if OTHER_FORMS & set(row.input) else reason_not_sendable(row)


def waits(row: Row) -> bool:
    """Return whether the answer waits for the run's end, so that the test needs a worker."""
    options = row.input.get("options", {})
    ends_in_run = row.expect_code.partition(":")[0] in {"OK", "item"}
    return (
        row.tool == "run_task_template"
        and ends_in_run
        and isinstance(options, dict)
        and options.get("mode") != "async"
    )


def kind_of(row: Row) -> str:
    """Return which test sends a row."""
    if is_about_egress(row):
        return "egress"
    if row.is_remote:
        return "remote"
    for mark, kind in SEVERAL_CALLS.items():
        if mark in str(row.input):
            return kind
    if waits(row):
        return "waiting"
    return "existing" if any(name in str(row.input) for name in OBJECTS) else "plain"


def cases(kind: str, *, rest: int = 1000, mcp: int = 1000, has: str = "") -> Any:
    """Parametrize over the rows of a kind over both APIs; those after the first of a tool's code
    are slow.
    """
    selected = [row for row in ALL if kind_of(row) == kind and has in str(row.input)]
    found = over_both_apis(selected, rest=rest, mcp=mcp)
    sent = [case for case in found if reason_left_out(*case.values) is None]
    return pytest.mark.parametrize(("surface", "row"), sent, indirect=["surface"])


class Surface(ABC):
    """A client that sends rows over one API."""

    @abstractmethod
    def check(self, row: Row, expected: str) -> None:
        """Send a row and check its code."""

    @abstractmethod
    def call(self, tool: str, arguments: Any) -> dict[str, Any]:
        """Send a call and return its answer; fail if it is refused."""

    @abstractmethod
    def call_at_once(self, tool: str, arguments: Any, times: int) -> list[dict[str, Any]]:
        """Send a call several times concurrently and return the answers."""


class OverRest(Surface):
    """REST: the code of an error has its HTTP status, or is only that."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def check(self, row: Row, expected: str) -> None:
        check_response(rest_calls.send(self.client, row), expected)

    def call(self, tool: str, arguments: Any) -> dict[str, Any]:
        response = self.client.request(**request_of(tool, arguments))
        assert response.is_success, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def call_at_once(self, tool: str, arguments: Any, times: int) -> list[dict[str, Any]]:
        with ThreadPoolExecutor(times) as pool:
            return list(pool.map(lambda _: self.call(tool, arguments), range(times)))


class OverMcp(Surface):
    """MCP: HTTP's 400 for broken JSON is a parse error."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def check(self, row: Row, expected: str) -> None:
        line = raw_line(row.input)
        if line is None:
            answer = self.host.call(row.tool, encode(row.input))
        else:
            self.host.send(line)
            answer = self.host.receive()
        assert code_of_answer(answer) == ("RPC_-32700" if expected == "HTTP_400" else expected)
        assert len(str(answer)) < 5000 or expected == "OK"

    def call(self, tool: str, arguments: Any) -> dict[str, Any]:
        return structured(self.host.call(tool, encode(arguments)))

    def call_at_once(self, tool: str, arguments: Any, times: int) -> list[dict[str, Any]]:
        ids = [self.host.start_call(tool, encode(arguments)) for _ in range(times)]
        return [structured(self.host.answer_to(request_id)) for request_id in ids]


def check_response(response: httpx.Response, expected: str) -> None:
    if expected.startswith("HTTP_"):
        code_of(response)
        assert response.status_code == int(expected.removeprefix("HTTP_"))
    else:
        assert code_of(response) == expected
        assert response.status_code in STATUS_OF.get(expected, {400})
    assert len(response.content) < 5000 or response.is_success


@pytest.fixture
def surface(request: pytest.FixtureRequest, web: str, principal: Principal) -> Iterator[Surface]:
    """Return a client of an API for the caller of the row; check that the server still answers."""
    row = request.node.callspec.params["row"]
    is_remote = row.is_remote or is_about_egress(row)
    trust: TrustLevel = "remote" if is_remote else "local"
    if request.param == "rest":
        client = request.getfixturevalue("client_with")(trust=trust)
        yield OverRest(client)
        return
    host = WebHost(web, create_token(name="host", trust=trust))
    over_mcp = OverMcp(host)
    yield over_mcp
    assert over_mcp.call("get_runtime_profile", {})["maxUrls"] == 1000
    host.close()


@pytest.fixture
def existing_objects(
    principal: Principal,
    outsider: Principal,
    make_run: Callable[..., Run],
    make_artifact: Callable[..., str],
) -> None:
    """Create the runs, artifacts and sessions that rows refer to."""
    now = datetime.now(UTC)
    make_run(id="run_ok", status="succeeded", result={"done": 1})
    make_run(id="run_canceled", status="canceled")
    make_run(id="run_expired", status="succeeded", ended_at=now - timedelta(hours=1))
    make_run(id="run_of_other_user", status="running", workspace_id=outsider.workspace_id)
    make_run(id="run_running", status="running", ready=False)
    contents = {
        "art_1000b": b"x" * 1000,
        "art_ok": b"{}",
        "art_empty": b"",
        "art_expired": b"x",
        "art_utf8_4byte": "😀😀".encode(),
        "art_row_without_blob": b"x",
        "art_of_other_user": b"x",
    }
    for name, data in contents.items():
        Artifact.objects.filter(id=make_artifact(data)).update(id=name)
    named = Artifact.objects.filter
    named(id="art_expired").update(expired_at=now, expires_at=now)
    named(id="art_row_without_blob").update(sha256="0" * 64)
    named(id="art_of_other_user").update(workspace_id=outsider.workspace_id)
    for name, owner in (("sess_of_other_user", outsider), ("sess_closed", principal)):
        BrowserSession.objects.create(
            id=name,
            tenant_id=owner.tenant_id,
            workspace_id=owner.workspace_id,
            created_at=now,
            closed_at=now if name == "sess_closed" else None,
        )


@pytest.mark.parametrize(("api", "most"), [("rest", 8), ("mcp", 4)])
def test_every_row_is_sent_or_has_its_reason(api: str, most: int) -> None:
    left_out = [row for row in ALL if reason_left_out(api, row)]
    own = [row for row in left_out if api == "mcp" or row.source.startswith("shared")]
    assert len(own) <= most


@cases("plain", rest=10, mcp=1)
def test_a_bad_input_gets_its_code(surface: Surface, row: Row) -> None:
    surface.check(row, row.expect_code)


@pytest.mark.usefixtures("existing_objects")
@cases("existing")
def test_a_call_about_an_existing_object_gets_its_code(surface: Surface, row: Row) -> None:
    surface.check(row, row.expect_code)


@pytest.mark.usefixtures("existing_objects")
@pytest.mark.parametrize("row", rest_rows("rest:call"), ids=str)
def test_a_call_that_only_http_can_express_gets_its_code(api: httpx.Client, row: Row) -> None:
    check_response(send_raw_request(api, row), row.expect_code)


@pytest.mark.parametrize("row", [row for row in rows("mcp:stdio") if "line" in row.input], ids=str)
def test_a_bad_line_gets_an_error_and_the_server_keeps_running(host: Host, row: Row) -> None:
    line = row.input["line"]
    host.send(line.encode() if isinstance(line, str) else encode(line))
    assert code_of_answer(host.receive()) == row.expect_code
    assert structured(host.call("get_runtime_profile", {}))["maxUrls"] == 1000


@pytest.mark.usefixtures("background_worker")
@cases("waiting")
def test_a_sync_run_ends_with_the_code_of_its_item(surface: Surface, row: Row) -> None:
    run = surface.call(row.tool, row.input)
    assert run["status"] == "failed"
    if row.expect_code != "OK":
        expected_code = row.expect_code.removeprefix("item:")
        assert run["error"]["errorCode"] == expected_code
        assert run["error"]["details"]["items"][0]["error"]["errorCode"] == expected_code


@pytest.mark.usefixtures("background_worker")
@cases("remote")
def test_a_remote_callers_item_gets_its_code(surface: Surface, row: Row) -> None:
    check_item(row, surface.call(row.tool, row.input))


@pytest.mark.usefixtures("background_worker")
@cases("egress", mcp=0)
def test_a_remote_callers_page_cannot_reach_a_forbidden_address(
    surface: Surface,
    fixtures_site: FixturesSite,  # noqa: F811
    row: Row,
) -> None:
    run = surface.call(row.tool, fixtures_site.with_port(row).input)
    fixtures_site.check(row, run)


@pytest.mark.slow
@pytest.mark.usefixtures("background_worker")
@cases("egress", mcp=0, has="websocket")
def test_a_websocket_that_is_refused_late_is_named_in_a_warning(
    surface: Surface,
    fixtures_site: FixturesSite,  # noqa: F811
    row: Row,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge = EgressProxy._connect

    async def judge_late(proxy: EgressProxy, to: Destination) -> Stream:
        if to.port == fixtures_site.forbidden.port:
            await asyncio.sleep(LATE_SECONDS)
        return await judge(proxy, to)

    monkeypatch.setattr(EgressProxy, "_connect", judge_late)
    run = surface.call(row.tool, fixtures_site.with_port(row).input)
    fixtures_site.check(row, run)


def call_in_order(surface: Surface, steps: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Send the calls of a sequence and return their answers."""
    answers: list[dict[str, Any]] = []
    for step in steps:
        if "$advance_ms" in step:  # every run is older by this many milliseconds
            age = timedelta(milliseconds=step["$advance_ms"])
            Run.objects.update(created_at=F("created_at") - age, ended_at=F("ended_at") - age)
        elif "$cancel_while" in step:
            if step["$cancel_while"] == "running":
                Run.objects.update(status="running", started_at=datetime.now(UTC))
            answers.append(surface.call("cancel_task_run", {"runId": answers[-1]["runId"]}))
        elif "$get" in step:
            answers.append(surface.call("get_task_run", {"runId": answers[-1]["runId"]}))
        else:
            answers.append(surface.call("run_task_template", step))
    return answers


@cases("cancel")
def test_a_canceled_run_reports_who_canceled_it_and_when(surface: Surface, row: Row) -> None:
    _, cancel, run = call_in_order(surface, row.input["$sequence"])
    assert cancel["success"] is True
    assert (run["status"], run["result"]) == ("canceled", None)
    assert run["error"]["errorCode"] == row.expect_code
    assert run["error"]["actor"].startswith("token:")
    assert abs(run["error"]["at"] - time.time() * 1000) < 60_000


@pytest.mark.usefixtures("background_worker")
@cases("repeated key")
def test_a_repeated_key_returns_the_same_run_until_the_key_expires(
    surface: Surface, row: Row
) -> None:
    first, second = call_in_order(surface, row.input["$sequence"])
    has_expired = "$advance_ms" in str(row.input)
    assert first["deduplicated"] is False
    assert second["deduplicated"] is not has_expired
    assert (first["runId"] == second["runId"]) is not has_expired


@pytest.mark.usefixtures("background_worker", "existing_objects")
@cases("concurrent")
def test_of_concurrent_calls_one_has_an_effect(surface: Surface, row: Row) -> None:
    times, arguments = row.input["$parallel"]
    before = Run.objects.count()
    answers = surface.call_at_once(row.tool, arguments, times)
    if row.tool == "cancel_task_run":
        assert [answer["success"] for answer in answers].count(True) == 1
        canceled = AuditEntry.objects.filter(action="run.canceled", resource_id="run_running")
        assert canceled.count() == 1
    else:
        assert len({answer["runId"] for answer in answers}) == 1
        assert [answer["deduplicated"] for answer in answers].count(False) == 1
        assert Run.objects.count() == before + 1


def test_an_input_is_sent_exactly_as_the_row_contains_it() -> None:
    assert b"NaN" in encode({"a": {"$raw_number": "NaN"}})
    assert request_of("get_task_run", {"runId": "a b", "x": True}) == {
        "method": "GET",
        "url": "/api/v1/runs/a%20b?x=true",
    }
