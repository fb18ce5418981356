"""Access over REST: tokens, scopes, trust and rate limits, and which refusals are audited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from config.asgi import application
from decisions.identity.principals import SCOPES
from decisions.models import AuditEntry, Token
from tests.support.rest.rest import bearer, json_of, refusal

PROFILE = "/api/v1/runtime/profile"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer cty_wrong",
        "Basic dTpw",
        "Bearer a b",
        "Bearer cty_" + "x" * 200,
        "Token cty_x",
        b"Bearer cty_\xff\xfe",
    ],
)
def test_without_a_valid_token_there_is_no_access(anonymous: httpx.Client, header: Any) -> None:
    headers = {} if header is None else {"Authorization": header}
    response = anonymous.get(PROFILE, headers=headers)
    assert refusal(response, 401)["errorCode"] == "UNAUTHENTICATED"
    assert response.headers["www-authenticate"].startswith('Bearer realm="continuity"')


def test_the_authorization_scheme_is_case_insensitive(anonymous: httpx.Client, token: str) -> None:
    assert anonymous.get(PROFILE, headers={"Authorization": f"bEARER {token}"}).is_success


def test_a_revoked_token_is_refused(api: httpx.Client) -> None:
    Token.objects.update(revoked_at=datetime.now(UTC))
    assert refusal(api.get(PROFILE), 401)["errorCode"] == "UNAUTHENTICATED"


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "/api/v1/runs", "runs:read"),
        ("POST", "/api/v1/runs", "runs:write"),
        ("GET", "/api/v1/runs/run_x/wait", "runs:read"),
        ("GET", "/api/v1/runs/run_x/events", "runs:read"),
        ("POST", "/api/v1/runs/run_x/cancel", "runs:write"),
        ("GET", "/api/v1/artifacts/art_x/content", "artifacts:read"),
    ],
)
def test_a_token_without_the_scope_is_refused_and_the_refusal_audited(
    client_with: Callable[..., httpx.Client], method: str, path: str, scope: str
) -> None:
    client = client_with(scopes=SCOPES - {scope})
    problem = refusal(client.request(method, path), 403)
    assert (problem["errorCode"], problem["details"]) == ("FORBIDDEN", {"scope": scope})
    entry = AuditEntry.objects.get(action="access.refused")
    assert entry.actor == f"token:{Token.objects.get().id}"
    assert entry.metadata == {"method": method, "scope": scope}
    assert entry.resource_id == path.removeprefix("/").replace("run_x", "<id:runId>").replace(
        "art_x", "<id:artifactId>"
    )


def test_bad_input_leaves_no_audit_row(api: httpx.Client) -> None:
    before = AuditEntry.objects.count()
    refusal(api.get("/api/v1/runs?limit=0"), 400)
    refusal(api.get("/api/v1/runs/run_missing"), 404)
    assert AuditEntry.objects.count() == before


def test_an_unsupported_method_answers_405_with_the_allowed_ones(api: httpx.Client) -> None:
    for method in ("DELETE", "PUT", "OPTIONS", "TRACE"):
        response = api.request(method, "/api/v1/runs")
        assert refusal(response, 405)["errorCode"] == "METHOD_NOT_ALLOWED"
        assert response.headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "127.0.0.1"},
        {"X-Forwarded-Host": "localhost"},
        {"Forwarded": "for=127.0.0.1"},
        {"X-Forwarded-Proto": "https"},
    ],
)
def test_a_local_token_behind_a_proxy_is_treated_as_remote(
    api: httpx.Client, headers: dict[str, str]
) -> None:
    assert json_of(api.get(PROFILE))["trustLevel"] == "local"
    assert json_of(api.get(PROFILE, headers=headers))["trustLevel"] == "remote"


def test_a_remote_token_stays_remote_on_this_machine(
    client_with: Callable[..., httpx.Client],
) -> None:
    profile = json_of(client_with(trust="remote").get(PROFILE))
    assert (profile["trustLevel"], profile["isRemote"]) == ("remote", True)


def test_an_unknown_host_header_is_refused(api: httpx.Client, anonymous: httpx.Client) -> None:
    for client, path in ((api, PROFILE), (anonymous, "/healthz"), (anonymous, "/api/schema")):
        assert refusal(client.get(path, headers={"Host": "evil.test"}), 400)
    assert anonymous.get("/admin/", headers={"Host": "evil.test"}).status_code == 400


@pytest.mark.slow
def test_a_burst_is_throttled_with_a_retry_after_header(web: str, token: str) -> None:
    client = httpx.Client(base_url=web, headers=bearer(token), timeout=60)
    with client, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.get("/api/v1/runs/run_x"), range(1000)))
    refused = [answer for answer in answers if answer.status_code == 429]
    assert {answer.status_code for answer in answers} == {404, 429}
    assert refusal(refused[0], 429)["retryable"] is True
    assert refused[0].headers["retry-after"] == "1"


def test_the_burst_of_one_caller_does_not_throttle_another(
    api: httpx.Client, client_with: Callable[..., httpx.Client], settings: Any
) -> None:
    settings.THROTTLE_PER_SECOND = 5
    other = client_with()
    assert 429 in {api.get(PROFILE).status_code for _ in range(30)}
    assert other.get(PROFILE).status_code == 200


@pytest.mark.parametrize(
    ("peer", "host"),
    [("203.0.113.7", "127.0.0.1"), ("127.0.0.1", "continuity.example")],
    ids=["peer", "host"],
)
def test_a_local_token_is_remote_from_another_machine_or_by_another_host_name(
    token: str, settings: Any, peer: str, host: str
) -> None:
    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, host]

    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(application, client=(peer, 50_000))
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
            return await client.get(PROFILE, headers=bearer(token))

    assert json_of(asyncio.run(call()))["trustLevel"] == "remote"


def test_a_response_is_neither_cached_nor_sniffed(api: httpx.Client) -> None:
    for path in (PROFILE, "/api/v1/runs/run_missing", "/healthz"):
        headers = api.get(path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
