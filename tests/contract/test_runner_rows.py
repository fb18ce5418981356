"""Test that each row of bad inputs about a runner's answer ends in the outcome of its row."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from decisions.foundation.validation.storable import storable
from runners.gateway import request
from tests.contract.bad_inputs import Row, encode, rows
from tests.services import free_port
from tests.support.runners.runner_calls import LONG_TIMEOUT_MS, call
from tests.support.runners.self_signed_certificate import self_signed
from tests.support.runners.stub_runner import (
    Respond,
    RunnerConnection,
    StubRunner,
    responding_with,
    stub_runner,
)

pytestmark = pytest.mark.usefixtures("open_loopback")

ROWS = rows("runner-response")
SHORT_MS = 300  # for runners that never finish
UNREACHABLE = ("refuse", "target_endpoint")  # in a row: no runner listens at the address


def behavior_of(row_input: dict[str, Any]) -> Respond:
    """Return the behavior of the runner that a row describes."""
    if "hang" in row_input:
        return hang_after_head if row_input["hang"] == "after_headers" else RunnerConnection.hang
    if "trickle_bytes_per_s" in row_input:
        return trickle
    if "reset" in row_input:
        return RunnerConnection.reset
    if "garbage" in row_input:
        return garbage
    return full_response(row_input)


def full_response(row_input: dict[str, Any]) -> Respond:
    """Return the behavior of a runner that sends its whole answer."""
    if "slow_ms" in row_input:
        return RunnerConnection.hang  # the call times out first, as the row requires
    if "gzip_bomb" in row_input:
        return responding_with(gzip.compress(b"a" * 50_000_000), content_encoding="gzip")
    raw = (
        encode(row_input["body"])
        if "body" in row_input
        else str(row_input.get("body_raw", "")).encode()
    )
    return responding_with(raw, row_input.get("status", 200))


def hang_after_head(connection: RunnerConnection) -> None:
    connection.head(content_length="100")
    connection.hang()


def trickle(connection: RunnerConnection) -> None:
    connection.head(content_length="100")
    while not connection.test_ended.wait(0.02):
        connection.send(b" ")


def garbage(connection: RunnerConnection) -> None:
    connection.send(b"\0\xff no HTTP\r\n\r\n")
    connection.end()


@contextlib.contextmanager
def start_runner_of(row_input: dict[str, Any], folder: Path) -> Iterator[StubRunner]:
    """Start the runner of a row, with a self-signed certificate if the row requires TLS."""
    tls = self_signed(folder) if "tls" in row_input else None
    respond = responding_with({"ok": True, "output": "x"}) if tls else behavior_of(row_input)
    with stub_runner(respond, tls) as runner:
        yield runner


def test_the_file_has_enough_rows() -> None:
    assert len(ROWS) >= 17


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_runners_answer_ends_in_the_outcome_of_its_row(
    row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row_input = row.input
    endless = {"hang", "trickle_bytes_per_s", "slow_ms"} & row_input.keys()
    if "target_timeoutMs" in row_input:  # the maximum timeout ends the call
        monkeypatch.setattr(request, "TIMEOUT_MAX_MS", SHORT_MS)
    default_ms = SHORT_MS if endless else LONG_TIMEOUT_MS
    with start_runner_of(row_input, tmp_path) as runner:
        closed_url = f"http://127.0.0.1:{free_port()}/" if "refuse" in row_input else None
        endpoint = row_input.get("target_endpoint", closed_url)
        url = endpoint if set(UNREACHABLE) & row_input.keys() else runner.url
        result = call(url, timeout_ms=row_input.get("target_timeoutMs", default_ms))
    assert (result.error or {"errorCode": "OK"})["errorCode"] == row.expect_code
    assert len(runner.requests) <= 1
    assert b"\\u0000" not in orjson.dumps(storable(result.output))  # PostgreSQL can store it
