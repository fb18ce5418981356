"""Test runs and artifacts as MCP resources: their content, paging, and what is not listed."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings

from runs.models import Run, RunEvent
from tests.contract.mcp_host import Host, structured
from tests.support.rest.rest import ERROR_KEYS


def read(host: Host, uri: str) -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = host.request("resources/read", {"uri": uri})["result"][
        "contents"
    ]
    return contents


def read_error(host: Host, uri: str) -> tuple[int, str]:
    error = host.request("resources/read", {"uri": uri})["error"]
    assert set(error["data"]) - {"nextActions"} == ERROR_KEYS
    return error["code"], error["data"]["errorCode"]


def test_the_newest_runs_and_their_artifacts_are_listed(
    host: Host, make_run: Callable[..., Run], make_artifact: Callable[..., str]
) -> None:
    run = make_run(status="succeeded", result={"done": 1}, result_summary="1 done")
    artifact_ids = [make_artifact(b"x", run_id=run.id) for _ in range(5)]
    listed = host.request("resources/list", {})["result"]["resources"]
    assert listed[0]["uri"] == f"continuity://runs/{run.id}"
    assert (listed[0]["title"], listed[0]["description"]) == ("made by a test: succeeded", "1 done")
    artifacts = [each["uri"] for each in listed[1:]]
    assert artifacts == [f"continuity://artifacts/{artifact}" for artifact in artifact_ids[:3]]
    for each in listed:
        assert read(host, each["uri"])


def test_a_run_resource_equals_the_answer_of_the_tool(
    host: Host, make_run: Callable[..., Run]
) -> None:
    run = make_run(status="succeeded", result={"done": 1})
    (found,) = read(host, f"continuity://runs/{run.id}")
    assert found["mimeType"] == "application/json"
    assert json.loads(found["text"]) == structured(host.call("get_task_run", {"runId": run.id}))


def test_events_are_read_page_by_page(
    host: Host, make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "MCP_ANSWER_BYTES", 2000)
    run = make_run(status="succeeded", last_seq=5)
    for seq in range(1, 6):
        RunEvent.objects.create(
            run_id=run.id, seq=seq, type="tool.update", at=run.created_at, data={"t": "x" * 900}
        )
    uri, seqs = f"continuity://runs/{run.id}/events", []
    while uri:
        page, *more = read(host, uri)
        assert len(page["text"]) < 3000
        seqs += [event["seq"] for event in json.loads(page["text"])["events"]]
        uri = more[0]["uri"] if more else ""
    assert seqs == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("mime_type", ["text/plain", "application/octet-stream"])
def test_a_large_artifact_is_read_chunk_by_chunk(
    host: Host, make_artifact: Callable[..., str], mime_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "MCP_ANSWER_BYTES", 1000)
    data = "漢字😀".encode() * 400
    uri, content = f"continuity://artifacts/{make_artifact(data, mime_type=mime_type)}", b""
    while uri:
        chunk, *more = read(host, uri)
        text = chunk.get("text")
        part = text.encode() if text is not None else base64.b64decode(chunk["blob"])
        assert len(part) <= 1000
        content += part
        assert ("text" in chunk) is (mime_type == "text/plain")
        uri = more[0]["uri"] if more else ""
        assert not more or uri in more[0]["text"]
    assert content == data


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("continuity://runs/run_unknown", (-32002, "RUN_NOT_FOUND")),
        ("continuity://runs/run_unknown/events", (-32002, "RUN_NOT_FOUND")),
        ("continuity://artifacts/art_unknown", (-32002, "ARTIFACT_NOT_FOUND")),
        ("continuity://artifacts/art_unknown?offset=-1", (-32602, "INVALID_PARAMETER")),
        ("continuity://runs/", (-32602, "INVALID_PARAMETER")),
        ("continuity://runs/a/b", (-32602, "INVALID_PARAMETER")),
        ("continuity://runs/../../etc", (-32602, "INVALID_PARAMETER")),
        ("file:///etc/hostname", (-32602, "INVALID_PARAMETER")),
        ("nothing", (-32602, "INVALID_PARAMETER")),
        ("", (-32602, "INVALID_PARAMETER")),
    ],
)
def test_a_bad_address_gets_its_code(host: Host, uri: str, expected: tuple[int, str]) -> None:
    assert read_error(host, uri) == expected


def test_no_subscription_is_offered(host: Host) -> None:
    answer = host.request("resources/subscribe", {"uri": "continuity://runs/run_1"})
    assert answer["error"]["code"] == -32601
