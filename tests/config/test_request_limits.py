"""Requests that are refused before a call handles them: large headers, large bodies and invalid
HTTP.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn

from config.asgi import application
from tests.support.rest.rest import refusal, submission
from tests.support.rest.rest_server import run_server

MEBIBYTE = 1024 * 1024


@pytest.mark.parametrize("http", ["httptools", "h11"])
def test_every_server_refuses_large_headers(http: str) -> None:
    config = uvicorn.Config(
        application, http=http, log_config=None, h11_max_incomplete_event_size=MEBIBYTE
    )
    with run_server(config) as address:
        response = httpx.get(f"{address}/healthz", headers={"X-Flood": "x" * 65_537})
        assert refusal(response, 431)
        assert httpx.get(f"{address}/healthz", headers={"X": "x" * 60_000}).status_code == 200


def test_a_body_over_one_mebibyte_is_refused(api: httpx.Client) -> None:
    call = submission("x" * MEBIBYTE)
    assert refusal(api.post("/api/v1/runs", json=call), 413)["errorCode"] == "INVALID_PARAMETER"


def test_a_body_with_a_huge_content_length_is_not_read(web: str, token: str) -> None:
    server_address = urlsplit(web)
    with socket.create_connection(
        (str(server_address.hostname), int(server_address.port or 0)), timeout=20
    ) as connection:
        connection.sendall(
            b"POST /api/v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Authorization: Bearer %b\r\nContent-Length: 10000000000\r\n\r\n{" % token.encode()
        )
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["errorCode"] == "INVALID_PARAMETER"


def test_a_body_without_a_length_is_cut_off(api: httpx.Client) -> None:
    def flood() -> Iterator[bytes]:
        yield from (b" " * MEBIBYTE for _ in range(9))

    try:
        response = api.post(
            "/api/v1/runs", content=flood(), headers={"Content-Type": "application/json"}
        )
    except httpx.WriteError:
        return  # the server closed the connection while the client was still sending
    assert refusal(response, 413)


def test_a_body_in_chunks_is_read_like_any_other(api: httpx.Client) -> None:
    raw = json.dumps(submission()).encode()
    response = api.post(
        "/api/v1/runs",
        content=iter([raw[:10], raw[10:]]),
        headers={"Content-Type": "application/json"},
    )
    assert response.status_code == 202


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=utf-16"},
        {},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ],
)
def test_only_plain_json_is_accepted(api: httpx.Client, headers: dict[str, str]) -> None:
    raw = json.dumps(submission()).encode()
    assert refusal(api.post("/api/v1/runs", content=raw, headers=headers), 415)


@pytest.mark.parametrize("tail", ["/cancel", "/retry"])
def test_a_call_without_arguments_needs_no_body_and_no_type(api: httpx.Client, tail: str) -> None:
    problem = refusal(api.post(f"/api/v1/runs/run_missing{tail}"), 404)
    assert problem["errorCode"] == "RUN_NOT_FOUND"
    unknown = api.post(f"/api/v1/runs/run_missing{tail}", json={"force": True})
    assert refusal(unknown, 400)["errorCode"] == "INVALID_PARAMETER"


def test_a_websocket_request_is_refused(web: str) -> None:
    server_address = urlsplit(web)
    with socket.create_connection(
        (str(server_address.hostname), int(server_address.port or 0)), timeout=20
    ) as connection:
        connection.sendall(
            b"GET /ws/nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            b"Sec-WebSocket-Version: 13\r\n\r\n"
        )
        assert connection.recv(65_536).startswith(b"HTTP/1.1 403 ")
