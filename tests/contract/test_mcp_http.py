"""Test MCP over raw HTTP: who may call, the form of a request, batches and the SSE stream."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import httpx
import pytest
from django.conf import settings

from decisions.foundation.errors import TooManyRequests
from decisions.foundation.validation.json_input import CALL_LIMIT
from decisions.identity.principals import create_token
from decisions.models import Token
from decisions.rest_base.throttle import CallCounter
from tests.contract.mcp_host import INITIALIZE, structured
from tests.contract.mcp_http_host import HEADERS, MODERN, MODERN_META, SseHost, WebHost
from tests.support.rest.rest import NO_TLS, bearer, refusal

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PROFILE = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_runtime_profile"}}'
DEEP = b"[" * 90 + b"]" * 90
each_path = pytest.mark.parametrize("path", ["/mcp", "/sse", "/messages/?session_id=x"])


@pytest.fixture
def client(web: str, token: str) -> Iterator[httpx.Client]:
    """Return a client with a token of trust level local."""
    headers = {**HEADERS, **bearer(token)}
    with httpx.Client(base_url=web, headers=headers, timeout=60, verify=NO_TLS) as client:
        yield client


def ping_with(value: bytes) -> bytes:
    return PING[:-1] + b',"params":{"x":' + value + b"}}"


def request_path(client: httpx.Client, path: str, **headers: str) -> httpx.Response:
    return client.request("GET" if path == "/sse" else "POST", path, headers=headers)


# --- who may call --------------------------------------------------------------------------------


@each_path
def test_a_call_without_a_token_is_challenged(anonymous: httpx.Client, path: str) -> None:
    response = request_path(anonymous, path)
    assert refusal(response, 401)["errorCode"] == "UNAUTHENTICATED"
    assert response.headers["www-authenticate"] == 'Bearer realm="continuity"'


@each_path
@pytest.mark.parametrize("secret", ["cty_wrong", "x", "cty_" + "x" * 500])
def test_a_wrong_token_is_reported_as_invalid(client: httpx.Client, path: str, secret: str) -> None:
    response = request_path(client, path, Authorization=f"Bearer {secret}")
    refusal(response, 401)
    assert 'error="invalid_token"' in response.headers["www-authenticate"]


@each_path
def test_a_foreign_host_is_refused(client: httpx.Client, path: str) -> None:
    response = request_path(client, path, Host="rebound.example:8000")
    assert "CONTINUITY_ALLOWED_HOSTS" in refusal(response, 421)["recovery"]


@each_path
@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example", "http://[", "x"]
)
def test_a_foreign_origin_is_refused(client: httpx.Client, path: str, origin: str) -> None:
    response = request_path(client, path, Origin=origin)
    assert "CONTINUITY_TRUSTED_ORIGINS" in refusal(response, 403)["recovery"]


def test_the_sites_own_origin_and_trusted_origins_may_call(
    client: httpx.Client, web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "CSRF_TRUSTED_ORIGINS", ["https://*.good.example"])
    for origin in (web, "https://app.good.example"):
        assert client.post("/mcp", content=PING, headers={"Origin": origin}).status_code == 200
    response = client.post("/mcp", content=PING, headers={"Origin": "http://app.good.example"})
    refusal(response, 403)


def test_a_revoked_token_sends_nothing_to_its_open_stream(web: str, token: str) -> None:
    host = SseHost(web, token)
    Token.objects.update(revoked_at="2026-01-01T00:00:00Z")
    response = host.client.post(host.path, content=PING)
    host.close()
    refusal(response, 401)


@pytest.mark.parametrize("kind", [WebHost, SseHost])
@pytest.mark.parametrize("forwarded", [False, True])
def test_the_trust_level_is_the_same_as_over_rest(
    web: str, token: str, kind: type[WebHost], forwarded: bool
) -> None:
    host = kind(web, token)
    if forwarded:
        host.client.headers["X-Forwarded-For"] = "203.0.113.7"
    profile = structured(host.call("get_runtime_profile", {}))
    host.close()
    assert profile["trustLevel"] == ("remote" if forwarded else "local")


def test_a_token_is_remote_unless_created_as_local(web: str, principal: Any) -> None:
    host = WebHost(web, create_token(name="usual"))
    assert structured(host.call("get_runtime_profile", {}))["isRemote"] is True
    host.close()


def test_calls_over_the_rate_are_refused(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CallCounter, "exceeds", lambda *_, **__: True)
    response = client.post("/mcp", content=PING)
    assert refusal(response, 429)["recovery"] == TooManyRequests.recovery
    assert response.headers["retry-after"] == "1"


# --- the form of a call --------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "PUT", "OPTIONS"])
def test_mcp_accepts_post_only(client: httpx.Client, method: str) -> None:
    response = client.request(method, "/mcp")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream", "image/png", ""])
def test_the_accept_header_must_allow_both_types(client: httpx.Client, accept: str) -> None:
    refusal(client.post("/mcp", content=PING, headers={"Accept": accept}), 406)


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/json; charset=utf-16"},
        {"Content-Encoding": "gzip"},
    ],
)
def test_another_content_type_or_encoding_is_refused(
    client: httpx.Client, headers: dict[str, str]
) -> None:
    refusal(client.post("/mcp", content=PING, headers=headers), 415)


@pytest.mark.parametrize("revision", ["", "2025-06-18", MODERN])
def test_a_body_over_the_limit_is_refused(client: httpx.Client, revision: str) -> None:
    headers = {"MCP-Protocol-Version": revision} if revision else {}
    chunks = (b"[" * 1024 * 1024 for _ in range(CALL_LIMIT // 2**20 + 1))
    refusal(client.post("/mcp", content=b"x" * (CALL_LIMIT + 1), headers=headers), 413)
    refusal(client.post("/mcp", content=chunks, headers=headers), 413)


@pytest.mark.parametrize("revision", ["", "2025-06-18", MODERN])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b"", -32700, id="nothing"),
        pytest.param(b"not json", -32700, id="no JSON"),
        pytest.param(b"\xff\xfe", -32700, id="no UTF-8"),
        pytest.param(PING[:-1] + b',"id":2}', -32700, id="two ids"),
        pytest.param(ping_with(b"NaN"), -32600, id="NaN"),
        pytest.param(ping_with(b"1e999"), -32600, id="a number out of range"),
        pytest.param(ping_with(b"9" * 20), -32600, id="an integer out of range"),
        pytest.param(ping_with(b'{"a":1,"a":2}'), -32600, id="a key twice"),
        pytest.param(ping_with(b'"\\u0000"'), -32600, id="a NUL"),
        pytest.param(ping_with(b'"\\ud800"'), -32600, id="half a surrogate pair"),
        pytest.param(ping_with(DEEP), -32600, id="too deep"),
        pytest.param(ping_with(b"[" + b"0," * 100_000 + b"0]"), -32600, id="too many values"),
        pytest.param(b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, id="another version"),
        pytest.param(b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, id="an object as id"),
        pytest.param(b'"text"', -32600, id="a text"),
        pytest.param(b"[" * 100_000, -32700, id="unclosed brackets"),
    ],
)
def test_a_bad_body_gets_a_json_rpc_error(
    client: httpx.Client, revision: str, body: bytes, code: int
) -> None:
    headers = {"MCP-Protocol-Version": revision} if revision else {}
    response = client.post("/mcp", content=body, headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (400, code)
    assert response.json()["id"] == (1 if code == -32600 and b'"id":1,' in body else None)


def test_an_unknown_revision_is_refused_with_the_known_ones(client: httpx.Client) -> None:
    meta = {**MODERN_META, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    headers = {"MCP-Protocol-Version": "2031-01-01", "Mcp-Method": "tools/list"}
    response = client.post("/mcp", json=call, headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32022)
    assert MODERN in response.json()["error"]["data"]["supported"]


# --- batches -------------------------------------------------------------------------------------


def test_a_batch_is_answered_as_a_batch_if_the_revision_has_batches(client: httpx.Client) -> None:
    notification = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    batch = b"[" + b",".join([PING, notification, PROFILE.replace(b":1,", b":2,"), b"5"]) + b"]"
    answers = client.post("/mcp", content=batch).json()
    assert [answer["id"] for answer in answers] == [1, 2, None]
    assert answers[1]["result"]["structuredContent"]["maxUrls"] == 1000
    assert answers[2]["error"]["code"] == -32600
    assert client.post("/mcp", content=b"[" + notification + b"]").status_code == 202


def test_each_message_of_a_batch_counts_as_a_call(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = count(1)
    monkeypatch.setattr(CallCounter, "exceeds", lambda *_, **__: next(calls) > 5)
    notification = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    pings = [PING.replace(b":1,", b":%d," % number) for number in range(1, 8)]
    answers = client.post(
        "/mcp", content=b"[" + b",".join([*pings, notification, b"5"]) + b"]"
    ).json()
    assert [answer["id"] for answer in answers] == [*range(1, 8), None]
    assert [answer["id"] for answer in answers if "result" in answer] == [1, 2, 3, 4, 5]
    error = answers[5]["error"]
    assert (error["code"], error["data"]["errorCode"]) == (-32600, "TOO_MANY_REQUESTS")
    assert client.post("/mcp", content=PING).status_code == 429


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", MODERN])
def test_a_batch_is_refused_if_the_revision_has_none(client: httpx.Client, revision: str) -> None:
    headers = {"MCP-Protocol-Version": revision}
    response = client.post("/mcp", content=b"[" + PING + b"]", headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32600)


@pytest.mark.parametrize(
    "batch", [b"[]", b"[" + b",".join([PING] * 51) + b"]"], ids=["empty", "51 messages"]
)
def test_an_empty_batch_and_a_batch_over_the_limit_are_refused(
    client: httpx.Client, batch: bytes
) -> None:
    assert client.post("/mcp", content=batch).json()["error"]["code"] == -32600


def test_initialize_cannot_be_part_of_a_batch(client: httpx.Client) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    (answer,) = client.post("/mcp", json=[call]).json()
    assert (answer["id"], answer["error"]["code"]) == (1, -32600)


# --- the SSE stream ------------------------------------------------------------------------------


def test_a_message_for_an_unknown_stream_is_not_found(client: httpx.Client) -> None:
    for address in ("/messages/", "/messages/?session_id=0", "/messages?session_id="):
        refusal(client.post(address, content=PING), 404)


def test_a_stream_accepts_messages_of_its_own_caller_only(web: str, token: str) -> None:
    host = SseHost(web, token)
    other = bearer(create_token(name="other", trust="local"))
    response = host.client.post(host.path, content=PING, headers=other)
    host.close()
    refusal(response, 404)


def test_a_bad_message_for_a_stream_gets_an_error_and_the_stream_stays_open(
    web: str, token: str
) -> None:
    host = SseHost(web, token)
    response = host.client.post(host.path, content=b"not json")
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32700)
    host.send(b'{"jsonrpc":"2.0","id":"bad","method":"ping","params":{"x":NaN}}')
    assert host.answer_to("bad")["error"]["code"] == -32600
    assert host.request("ping", {})["result"] == {}
    host.close()
