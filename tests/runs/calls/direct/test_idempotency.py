"""Direct calls with an idempotency key run once, even when the first response is lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.principals import Principal, authenticate
from decisions.models import AuditEntry
from runners.targets.targets import TargetFields, allow_on_target, create_target_row
from runs.calls.direct.idempotency import KEY_LIFETIME, delete_expired_keys
from runs.models import KeyedCall, OpenCall
from tests.services import free_port
from tests.support.rest.rest import json_of, refusal
from tests.support.runners.stub_runner import responding_with, stub_runner

pytestmark = pytest.mark.usefixtures("open_loopback")

OK = {"ok": True, "output": {"done": [1, None, "é"]}}
Call = Callable[..., httpx.Response]


@pytest.fixture
def on_runner(api: httpx.Client, principal: Principal) -> Call:
    """Call a tool of a runner at an address: `on_runner(url, key="k", cmd="true")`."""
    caller = authenticate(api.headers["Authorization"].removeprefix("Bearer "))
    target_ids: dict[str, str] = {}

    def call(endpoint: str, *, key: str = "k", **args: Any) -> httpx.Response:
        if endpoint not in target_ids:
            fields = TargetFields(
                caller.tenant_id, caller.workspace_id, endpoint, "docker-runner", endpoint
            )
            target = create_target_row(fields, actor="test")
            allow_on_target(target, ["*"], actor="test", reason="test")
            target_ids[endpoint] = target.id
        body = {"args": args, "targetId": target_ids[endpoint], "idempotencyKey": key}
        return api.post("/api/v1/tools/bash.exec/call", json=body)

    return call


def count_called_events() -> int:
    return AuditEntry.objects.filter(action="tool.called").count()


def test_a_repeated_key_returns_the_stored_answer_without_a_second_call(on_runner: Call) -> None:
    with stub_runner(responding_with(OK)) as runner:
        first, second = (on_runner(runner.url, cmd="true") for _ in range(2))
        assert json_of(second) == json_of(first)
        assert len(runner.requests) == 1
    assert count_called_events() == 1


def test_a_different_call_with_the_same_key_is_refused(on_runner: Call) -> None:
    with stub_runner(responding_with(OK)) as runner:
        json_of(on_runner(runner.url, cmd="true"))
        assert refusal(on_runner(runner.url, cmd="false"), 409)["errorCode"] == "CONFLICT"
        json_of(on_runner(runner.url, key="other", cmd="false"))
        assert len(runner.requests) == 2


def test_a_stored_answer_is_for_callers_with_the_trust_level_of_the_call(
    api: httpx.Client, on_runner: Call
) -> None:
    with stub_runner(responding_with(OK)) as runner:
        json_of(on_runner(runner.url, cmd="true"))
        api.headers["Forwarded"] = "for=203.0.113.1"
        refused = refusal(on_runner(runner.url, cmd="true"), 409)
        assert "from this machine" in refused["message"]


def test_a_call_that_failed_without_effect_may_be_repeated(on_runner: Call) -> None:
    unreachable_url = f"http://127.0.0.1:{free_port()}/execute"
    for _ in range(2):
        problem = refusal(on_runner(unreachable_url, cmd="true"), 502)
        assert problem["details"]["effect"] == "none"
    assert count_called_events() == 2
    assert not KeyedCall.objects.exists()


def test_a_call_that_fell_back_returns_its_stored_answer(
    api: httpx.Client, principal: Principal, project: Path
) -> None:
    caller = authenticate(api.headers["Authorization"].removeprefix("Bearer "))
    config = {"onUnreachable": "fallback_local"}
    fields = TargetFields(
        caller.tenant_id,
        caller.workspace_id,
        "away",
        "docker-runner",
        endpoint=f"http://127.0.0.1:{free_port()}/execute",
        config=config,
    )
    target = create_target_row(fields, actor="test")
    allow_on_target(target, ["*"], actor="test", reason="test")
    edit = {"path": "game/scene/start.txt", "find": "none", "replace": "nonenone"}
    body = {"args": edit, "targetId": target.id, "idempotencyKey": "one"}
    first = json_of(api.post("/api/v1/tools/replace_in_file/call", json=body))
    assert (first["output"], first["fellBackFrom"]) == ({"count": 1}, target.id)
    edited = (project / "game/scene/start.txt").read_bytes()
    assert json_of(api.post("/api/v1/tools/replace_in_file/call", json=body)) == first
    assert (project / "game/scene/start.txt").read_bytes() == edited


def test_a_call_with_an_unknown_effect_is_not_repeated(on_runner: Call) -> None:
    with stub_runner(lambda connection: connection.reset()) as runner:
        first, second = (on_runner(runner.url, cmd="true") for _ in range(2))
        assert refusal(first, 502)["details"]["effect"] == "unknown"
        assert second.json() == first.json()
        assert len(runner.requests) == 1


def test_an_interrupted_call_is_not_repeated(on_runner: Call) -> None:
    with stub_runner(responding_with(OK)) as runner:
        json_of(on_runner(runner.url, cmd="true"))
        KeyedCall.objects.update(answer=None)  # the state that a killed process leaves
        problem = refusal(on_runner(runner.url, cmd="true"), 502)
        assert problem["details"]["effect"] == "unknown"
        assert len(runner.requests) == 1


def test_a_call_in_flight_is_reported_as_a_conflict(on_runner: Call) -> None:
    with stub_runner(responding_with(OK)) as runner:
        call_id = json_of(on_runner(runner.url, cmd="true"))["callId"]
        KeyedCall.objects.update(answer=None)
        OpenCall.objects.create(id=call_id, opening={}, process="", opened_at=datetime.now(UTC))
        problem = refusal(on_runner(runner.url, cmd="true"), 409)
        assert problem["details"] == {"callId": call_id}


def test_a_later_deny_rule_does_not_hide_the_stored_answer(on_runner: Call) -> None:
    with stub_runner(responding_with(OK)) as runner:
        first = on_runner(runner.url, cmd="true")
        create_rule(RuleFields("deny", tool="*", reason="test"), actor="t")
        assert json_of(on_runner(runner.url, cmd="true")) == json_of(first)
        assert on_runner(runner.url, key="new", cmd="true").status_code == 403


def test_an_edit_with_a_key_is_applied_once(api: httpx.Client, project: Path) -> None:
    scene = project / "game/scene/start.txt"
    args = {"path": "game/scene/start.txt", "find": "none", "replace": "nonenone"}
    url = "/api/v1/tools/replace_in_file/call"
    first = json_of(api.post(url, json={"args": args, "idempotencyKey": "one"}))
    edited = scene.read_bytes()
    assert json_of(api.post(url, json={"args": args, "idempotencyKey": "one"})) == first
    assert scene.read_bytes() == edited
    json_of(api.post(url, json={"args": args}))
    assert scene.read_bytes() != edited


def test_a_read_with_a_repeated_key_reads_again(api: httpx.Client, project: Path) -> None:
    def read() -> str:
        body = {"args": {"path": "game/scene/start.txt"}, "idempotencyKey": "one"}
        return str(
            json_of(api.post("/api/v1/tools/read_file/call", json=body))["output"]["content"]
        )

    before = read()
    (project / "game/scene/start.txt").write_text("new;\n")
    assert read() == "new;\n" != before


def test_keys_expire_after_a_day(on_runner: Call) -> None:
    with stub_runner(responding_with(OK)) as runner:
        json_of(on_runner(runner.url, cmd="true"))
        too_old = datetime.now(UTC) - KEY_LIFETIME - timedelta(seconds=1)
        KeyedCall.objects.update(created_at=too_old)
        json_of(on_runner(runner.url, cmd="true"))
        assert len(runner.requests) == 2
    assert delete_expired_keys() == 0
    KeyedCall.objects.update(created_at=too_old)
    assert delete_expired_keys() == 1


def test_a_concurrent_call_with_the_same_key_is_not_made(
    on_runner: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both requests find the key unused."""
    monkeypatch.setattr("runs.calls.direct.call.find_stored_outcome", lambda use: None)
    with stub_runner(responding_with(OK)) as runner:
        json_of(on_runner(runner.url, cmd="true"))
        assert refusal(on_runner(runner.url, cmd="true"), 409)["errorCode"] == "CONFLICT"
        assert len(runner.requests) == 1
