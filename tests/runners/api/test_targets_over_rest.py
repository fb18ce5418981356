"""Targets over REST: created, changed, probed and deleted, each in its own workspace."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.principals import DEFAULT_SCOPES, Principal
from decisions.models import AuditEntry, Confirmation, Decision, PolicyRule, Tenant
from runners.models import ExecutionTarget
from runners.targets.targets import TargetFields, create_target_row
from tests.services import free_port
from tests.support.decisions.confirmations import confirm
from tests.support.rest.rest import json_of, refusal
from tests.support.runners.stub_runner import responding_with, stub_runner

pytestmark = pytest.mark.usefixtures("open_loopback")

TARGETS = "/api/v1/targets"
ADMIN = DEFAULT_SCOPES | {"targets:admin"}
ENDPOINT = "http://127.0.0.1:18081/execute"
NEW = {"kind": "docker-runner", "name": "runner", "endpoint": ENDPOINT}


@pytest.fixture
def admin(client_with: Callable[..., httpx.Client]) -> httpx.Client:
    """A client whose token may write targets."""
    return client_with(scopes=ADMIN, trust="local")


def create_target(admin: httpx.Client, **more: Any) -> dict[str, Any]:
    return json_of(admin.post(TARGETS, json={**NEW, **more}), 201)


def test_a_created_target_is_returned_as_it_was_sent(
    admin: httpx.Client, api: httpx.Client
) -> None:
    config = {"timeoutMs": 60_000, "onUnreachable": "fallback_local", "region": "here"}
    target = create_target(admin, config=config, isDefault=True)
    assert re.fullmatch("target_[a-z0-9]{26}", target["targetId"])
    assert (target["kind"], target["endpoint"], target["config"]) == (
        "docker-runner",
        ENDPOINT,
        config,
    )
    assert (target["version"], target["enabled"], target["isDefault"]) == (1, True, True)
    assert (target["lastSeenAt"], target["probedAt"]) == (None, None)
    shown = json_of(api.get(f"{TARGETS}/{target['targetId']}"))
    assert shown == target
    assert json_of(api.get(TARGETS))["targets"] == [target]
    assert json_of(api.get(TARGETS, params={"kind": "workspace"}))["targets"] == []


def test_a_token_is_accepted_and_never_returned(admin: httpx.Client, principal: Principal) -> None:
    target = create_target(admin, authToken="s3cret-token-value")
    assert target["hasAuthToken"] is True
    row = ExecutionTarget.objects.get()
    stored = b"".join(str(value).encode() for value in vars(row).values())
    assert b"s3cret" not in stored + bytes(row.sealed_auth_token or b"")
    audited = [entry.metadata for entry in AuditEntry.objects.filter(resource_type="target")]
    answers = admin.get(TARGETS).text + admin.get(f"{TARGETS}/{row.id}").text
    assert "s3cret" not in str(audited) + answers


@pytest.mark.parametrize(
    ("change", "has_token"),
    [({}, True), ({"authToken": None}, False), ({"authToken": "new"}, True)],
)
def test_a_token_is_unchanged_until_it_is_replaced(
    admin: httpx.Client, change: dict[str, Any], has_token: bool
) -> None:
    target = create_target(admin, authToken="first")
    replaced = admin.put(f"{TARGETS}/{target['targetId']}", json={"name": "b", **change})
    assert json_of(replaced)["hasAuthToken"] is has_token


def test_every_change_raises_the_version_and_audits_the_previous_values(
    admin: httpx.Client,
) -> None:
    target = create_target(admin)
    url = f"{TARGETS}/{target['targetId']}"
    again = json_of(admin.put(url, json={"name": "b", "endpoint": ENDPOINT, "version": 1}))
    assert (again["version"], again["name"]) == (2, "b")
    stale = admin.put(url, json={"name": "c", "version": 1})
    assert refusal(stale, 409)["errorCode"] == "CONFLICT"
    entry = AuditEntry.objects.get(action="target.changed")
    assert (entry.metadata["version"], entry.metadata["before"]["name"]) == (2, "runner")


def test_a_workspace_has_one_default_target_per_kind(admin: httpx.Client) -> None:
    first = create_target(admin, isDefault=True)
    second = admin.post(TARGETS, json={**NEW, "isDefault": True})
    assert refusal(second, 409)["details"] == {"targetId": first["targetId"]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"endpoint": "http://10.0.0.7:8080/execute"},
        {"endpoint": "http://169.254.169.254/"},
        {"endpoint": "ftp://example.com/"},
        {"endpoint": "http://user:word@example.com/"},
        {"endpoint": "not an address"},
        {"config": {"endpoint": "http://192.168.1.1/"}},
        {"config": {"endpoint": 5}},
        {"config": {"timeoutMs": 0}},
        {"config": {"timeoutMs": "15000"}},
        {"config": {"timeoutMs": True}},
        {"config": {"onUnreachable": "retry"}},
        {"config": {"authToken": "s3cret"}},
        {"config": {"big": "a" * 20_000}},
        {"authToken": "with blank"},
        {"authToken": "line\r\nx-evil: 1"},
        {"authToken": "schlüssel"},
        {"name": " "},
        {"name": "a\u0007"},
        {"kind": "browser"},
        {"kind": "workspace"},
        {"kind": "unknown"},
        {"workspaceId": "w"},
        {"isDefault": "yes"},
    ],
)
def test_an_invalid_target_is_refused_and_not_stored(
    admin: httpx.Client, wrong: dict[str, Any]
) -> None:
    answer = admin.post(TARGETS, json={**NEW, **wrong})
    assert refusal(answer, 400)["errorCode"] == "INVALID_PARAMETER"
    assert "s3cret" not in answer.text
    assert not ExecutionTarget.objects.exists()


@pytest.mark.parametrize(
    ("endpoint", "allowed"),
    [
        ("http://168.63.129.16/", ""),
        ("http://[64:ff9b::a9fe:a9fe]/", ""),
        ("http://169.254.169.254/", "0.0.0.0/0,::/0"),
        ("http://[::ffff:169.254.169.254]/", "0.0.0.0/0,::/0"),
    ],
)
def test_a_metadata_service_is_refused(
    admin: httpx.Client, monkeypatch: pytest.MonkeyPatch, endpoint: str, allowed: str
) -> None:
    monkeypatch.setenv("CONTINUITY_EGRESS_ALLOW", allowed)
    answer = admin.post(TARGETS, json={**NEW, "endpoint": endpoint})
    assert refusal(answer, 400)["details"]["cause"] == "URL_BLOCKED"
    assert not ExecutionTarget.objects.exists()


def test_a_confirmation_of_a_new_target_does_not_contain_its_token(admin: httpx.Client) -> None:
    create_rule(RuleFields("confirm", tool="create_target", reason="test"), actor="test")
    answer = admin.post(TARGETS, json={**NEW, "authToken": "s3cret-token-value"})
    assert answer.status_code == 202
    assert not ExecutionTarget.objects.exists()
    stored = [*Decision.objects.values(), *Confirmation.objects.values()]
    assert len(stored) == 2
    assert "s3cret" not in str([*stored, *AuditEntry.objects.values()]) + answer.text


def test_a_confirmation_of_a_new_target_is_for_its_token_alone(admin: httpx.Client) -> None:
    create_rule(RuleFields("confirm", tool="create_target", reason="test"), actor="test")
    first = {**NEW, "authToken": "s3cret-token-value"}
    number = admin.post(TARGETS, json=first).json()["details"]["decisionId"]
    confirm(decision_id=number, by="admin:a", how="admin")
    assert admin.post(TARGETS, json={**NEW, "authToken": "another-token"}).status_code == 202
    assert not ExecutionTarget.objects.exists()
    assert admin.post(TARGETS, json=first).is_success


def test_a_blocked_address_error_names_the_setting_that_allows_it(admin: httpx.Client) -> None:
    answer = admin.post(TARGETS, json={**NEW, "endpoint": "http://10.0.0.7:8080/execute"})
    assert "CONTINUITY_EGRESS_ALLOW" in refusal(answer, 400)["message"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", ""), ("PUT", "/target_x"), ("DELETE", "/target_x"), ("POST", "/target_x/probe")],
)
def test_writing_targets_needs_its_own_scope(api: httpx.Client, method: str, path: str) -> None:
    problem = refusal(api.request(method, TARGETS + path, json={}), 403)
    assert problem["details"] == {"scope": "targets:admin"}


@pytest.mark.parametrize(
    ("method", "path"), [("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/probe")]
)
def test_a_target_of_another_workspace_is_not_found(
    admin: httpx.Client, client_with: Callable[..., httpx.Client], method: str, path: str
) -> None:
    target_id = create_target(admin)["targetId"]
    stranger = client_with(scopes=ADMIN, workspace="elsewhere", trust="local")
    body = {"name": "changed"} if method == "PUT" else None
    for requested_id in (target_id, "target_missing"):
        answer = stranger.request(method, f"{TARGETS}/{requested_id}{path}", json=body)
        problem = refusal(answer, 404)
        assert problem["errorCode"] == "TARGET_NOT_FOUND"
        assert problem["message"].replace(requested_id, "") == "There is no target '' here."
    assert ExecutionTarget.objects.get().name == "runner"


def test_a_shared_target_of_another_tenant_is_not_found(admin: httpx.Client) -> None:
    tenant = Tenant.objects.create(name="another")
    fields = TargetFields(tenant.id, None, "foreign", "docker-runner", endpoint=ENDPOINT)
    foreign = create_target_row(fields, actor="test")
    missing = refusal(admin.get(f"{TARGETS}/{foreign.id}"), 404)
    assert missing["errorCode"] == "TARGET_NOT_FOUND"
    assert json_of(admin.get(TARGETS))["targets"] == []


def test_a_shared_target_is_readable_and_not_writable(
    admin: httpx.Client, principal: Principal
) -> None:
    fields = TargetFields(principal.tenant_id, None, "shared", "docker-runner", endpoint=ENDPOINT)
    shared = create_target_row(fields, actor="test")
    url = f"{TARGETS}/{shared.id}"
    assert json_of(admin.get(url))["workspaceId"] is None
    assert refusal(admin.put(url, json={"name": "changed"}), 403)["errorCode"] == "FORBIDDEN"
    assert refusal(admin.delete(url), 403)["errorCode"] == "FORBIDDEN"


def test_deleting_a_target_deletes_its_rules(admin: httpx.Client, principal: Principal) -> None:
    target_id = create_target(admin)["targetId"]
    target_rule = RuleFields(
        "allow", "workspace", principal.workspace_id, "bash.exec", target_id, reason="test"
    )
    other_rule = create_rule(RuleFields("deny", tool="bash.exec", reason="test"), actor="test")
    create_rule(target_rule, actor="test")
    assert json_of(admin.delete(f"{TARGETS}/{target_id}")) == {
        "success": True,
        "targetId": target_id,
    }
    assert refusal(admin.get(f"{TARGETS}/{target_id}"), 404)["errorCode"] == "TARGET_NOT_FOUND"
    active = PolicyRule.objects.filter(retired_at__isnull=True)
    assert [rule.key for rule in active] == [other_rule.key]
    assert AuditEntry.objects.filter(action="target.deleted", resource_id=target_id).exists()


@pytest.mark.parametrize("status", [200, 401, 404, 500])
def test_a_probe_succeeds_with_any_http_response(admin: httpx.Client, status: int) -> None:
    with stub_runner(responding_with({"ok": True}, status)) as runner:
        target = create_target(admin, endpoint=runner.url, authToken="t0ken")
        probed = json_of(admin.post(f"{TARGETS}/{target['targetId']}/probe"))
    assert runner.requests[0].line == "GET /health HTTP/1.1"
    assert runner.requests[0].headers["authorization"] == "Bearer t0ken"
    assert probed["probeError"] is None
    assert probed["lastSeenAt"] == probed["probedAt"] > 0
    assert (probed["version"], probed["updatedAt"]) == (1, target["updatedAt"])


def test_a_failed_probe_keeps_the_time_of_the_last_success(admin: httpx.Client) -> None:
    with stub_runner(responding_with({})) as runner:
        url = f"{TARGETS}/{create_target(admin, endpoint=runner.url)['targetId']}"
        last_seen = json_of(admin.post(f"{url}/probe"))["lastSeenAt"]
    closed_url = f"http://127.0.0.1:{free_port()}/execute"
    json_of(admin.put(url, json={"name": "runner", "endpoint": closed_url}))
    probed = json_of(admin.post(f"{url}/probe"))
    assert (probed["lastSeenAt"], probed["probeError"]) == (
        last_seen,
        "No server accepts connections at the address.",
    )
    entry = AuditEntry.objects.filter(action="target.probed").latest("id")
    assert entry.metadata["isUp"] is False


def test_only_runners_are_probed(
    admin: httpx.Client, principal: Principal, tmp_path: Any, settings: Any
) -> None:
    settings.WORKSPACE_ROOTS = (tmp_path,)
    (tmp_path / "game").mkdir()
    config = {"root": str(tmp_path / "game")}
    folder = admin.post(TARGETS, json={"kind": "workspace", "name": "game", "config": config})
    url = f"{TARGETS}/{json_of(folder, 201)['targetId']}"
    assert refusal(admin.post(f"{url}/probe"), 400)["errorCode"] == "INVALID_PARAMETER"


def test_the_path_of_a_folder_is_returned_to_local_callers_only(
    client_with: Callable[..., httpx.Client], admin: httpx.Client, tmp_path: Any, settings: Any
) -> None:
    settings.WORKSPACE_ROOTS = (tmp_path,)
    (tmp_path / "game").mkdir()
    config = {"root": str(tmp_path / "game")}
    admin.post(TARGETS, json={"kind": "workspace", "name": "game", "config": config})
    remote = client_with(trust="remote")
    assert json_of(admin.get(TARGETS))["targets"][0]["config"] == config
    assert json_of(remote.get(TARGETS))["targets"][0]["config"] == {}
