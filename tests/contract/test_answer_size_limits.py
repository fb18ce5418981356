"""Test that answers stay within a model's budget: shorter pages, results read part by part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import orjson
import pytest
from django.conf import settings

from runners.untrusted_text import BEGIN, END
from runs.models import Run, RunEvent
from tests.contract.mcp_host import Host, error_of, structured
from tests.support.rest.rest import json_of, refusal

PAGES = {
    "summary": {"total": 2, "succeeded": 2, "failed": 0},
    "items": [
        {
            "url": f"https://{name}.test/",
            "title": name,
            "success": True,
            "error": None,
            "content": {"sections": [{"heading": "Install", "level": 2, "text": text}]},
        }
        for name, text in (("one", "pip install one"), ("two", "漢" * 40_000))
    ],
}


@pytest.fixture
def stored_result(
    make_run: Callable[..., Run], make_artifact: Callable[..., str]
) -> tuple[str, str]:
    """Create a run that ended with a large result, and the artifact with the whole result."""
    run = make_run(status="succeeded", template_id="batch_extract_pages", result=PAGES)
    content, mime_type = orjson.dumps(PAGES), "application/json"
    return run.id, make_artifact(content, mime_type=mime_type, kind="result", run_id=run.id)


def list_all_runs(host: Host, budget: int) -> list[dict[str, Any]]:
    """Page through all runs by nextCursor and assert that every answer is within the budget."""
    runs: list[dict[str, Any]] = []
    more, after = True, dict[str, Any]()
    while more:
        page = structured(host.call("list_task_runs", {"limit": 1000, **after}))
        assert len(orjson.dumps(page)) < budget + 1000
        assert page["total"] == 40
        runs += page["runs"]
        more, after = page["hasMore"], {"cursor": page["nextCursor"]}
    return runs


def test_a_page_of_runs_ends_within_the_budget_and_the_next_page_continues(
    host: Host, make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "MCP_ANSWER_BYTES", 8192)
    run_ids = [make_run(result_summary="x" * 200).id for _ in range(40)]
    assert sorted(run["runId"] for run in list_all_runs(host, 8192)) == sorted(run_ids)


def test_a_run_larger_than_the_budget_is_still_listed(
    host: Host, make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "MCP_ANSWER_BYTES", 100)
    make_run(), make_run()
    page = structured(host.call("list_task_runs", {}))
    assert (len(page["runs"]), page["hasMore"]) == (1, True)
    rest = structured(host.call("list_task_runs", {"cursor": page["nextCursor"]}))
    assert (len(rest["runs"]), rest["hasMore"], rest["nextCursor"]) == (1, False, None)


def test_rest_returns_as_many_runs_as_requested(
    api: httpx.Client, make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "MCP_ANSWER_BYTES", 100)
    make_run(), make_run()
    assert len(json_of(api.get("/api/v1/runs"))["runs"]) == 2


@pytest.mark.usefixtures("stored_result")
def test_a_list_has_the_start_of_a_result_and_the_id_of_the_whole(
    host: Host, stored_result: tuple[str, str]
) -> None:
    (run,) = structured(host.call("list_task_runs", {}))["runs"]
    assert len(orjson.dumps(run)) < 3000
    assert (run["result"]["truncated"], run["result"]["artifactId"]) == (True, stored_result[1])
    assert run["result"]["summary"] == PAGES["summary"]


def test_a_page_of_events_ends_within_the_budget_and_the_next_page_continues(
    host: Host, make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "MCP_ANSWER_BYTES", 5000)
    run = make_run(status="succeeded", last_seq=30)
    for seq in range(1, 31):
        RunEvent.objects.create(
            run_id=run.id, seq=seq, type="tool.update", at=run.created_at, data={"t": "x" * 1000}
        )
    seqs: list[int] = []
    page: dict[str, Any] = {"lastSeq": 0, "terminal": False}
    while not page["terminal"]:
        arguments = {"runId": run.id, "after": page["lastSeq"], "limit": 1000}
        page = structured(host.call("subscribe_task_run_events", arguments))
        assert len(orjson.dumps(page)) < 6000
        seqs += [event["seq"] for event in page["events"]]
    assert seqs == list(range(1, 31))


def test_the_list_of_templates_is_within_the_budget(host: Host) -> None:
    answer = structured(host.call("list_task_templates", {}))
    assert len(orjson.dumps(answer)) < settings.MCP_ANSWER_BYTES


@pytest.mark.parametrize("by", ["artifactId", "runId"])
def test_parts_of_a_result_are_the_same_over_rest_and_mcp(
    host: Host, api: httpx.Client, stored_result: tuple[str, str], by: str
) -> None:
    source = {by: stored_result[by == "artifactId"]}
    with_floats = {"maxChars": 200.0, "sections": [0.0], "item": 1.0}
    for part in ({"outline": True}, {"grep": "pip"}, {"item": 1, "offset": 39_000}, with_floats):
        answer = structured(host.call("read_page_content", source | part))
        (begin, *_, end) = answer
        assert (answer.pop(begin), answer.pop(end), begin, end) == ("", "", BEGIN, END)
        assert answer == json_of(api.post("/api/v1/page-content", json=source | part))
        assert answer["totalPages"] == 2


def test_the_largest_answer_stays_within_the_budget(
    host: Host, stored_result: tuple[str, str]
) -> None:
    answer = structured(
        host.call("read_page_content", {"runId": stored_result[0], "maxChars": 30_000})
    )
    assert answer["nextOffset"] > 29_000
    assert len(orjson.dumps(answer)) < settings.MCP_ANSWER_BYTES


INVALID = [
    ({}, "INVALID_PARAMETER"),
    ({"artifactId": "art_x", "runId": "run_x"}, "INVALID_PARAMETER"),
    ({"artifactId": "art_unknown"}, "ARTIFACT_NOT_FOUND"),
    ({"runId": "run_unknown"}, "RUN_NOT_FOUND"),
    ({"artifactId": "$result", "grep": "(?=x)"}, "INVALID_PARAMETER"),
    ({"artifactId": "$result", "grep": ""}, "INVALID_PARAMETER"),
    ({"artifactId": "$result", "grep": "x" * 501}, "INVALID_PARAMETER"),
    ({"artifactId": "$result", "item": 2}, "INVALID_PARAMETER"),
    ({"artifactId": "$result", "item": -1}, "INVALID_PARAMETER"),
    ({"artifactId": "$result", "sections": []}, "INVALID_PARAMETER"),
    ({"artifactId": "$result", "sections": [-1]}, "INVALID_PARAMETER"),
    ({"artifactId": "$result", "sections": [1.5]}, "INVALID_PARAMETER"),
    ({"artifactId": "$result", "maxChars": 30_001}, "INVALID_PARAMETER"),
    ({"artifactId": "$result", "offset": -1}, "INVALID_PARAMETER"),
    ({"artifactId": "$result", "further": 1}, "INVALID_PARAMETER"),
    ({"artifactId": "$picture"}, "INVALID_PARAMETER"),
    ({"runId": "$empty"}, "INVALID_PARAMETER"),
]


@pytest.mark.parametrize(("call", "code"), INVALID, ids=str)
def test_an_invalid_request_for_a_part_gets_its_code(
    host: Host,
    api: httpx.Client,
    stored_result: tuple[str, str],
    make_run: Callable[..., Run],
    make_artifact: Callable[..., str],
    call: dict[str, Any],
    code: str,
) -> None:
    values = {
        "$result": stored_result[1],
        "$picture": make_artifact(b"\xff", mime_type="image/png"),
        "$empty": make_run().id,
    }
    arguments = {name: values.get(str(value), value) for name, value in call.items()}
    assert error_of(host.call("read_page_content", arguments))["errorCode"] == code
    response = api.post("/api/v1/page-content", json=arguments)
    assert refusal(response, response.status_code)["errorCode"] == code


def test_a_text_that_is_not_a_result_is_one_section(
    host: Host, make_artifact: Callable[..., str]
) -> None:
    for data in (b"a line\nanother", b'{"a": [1, 2]}', b'{"a": '):
        artifact = make_artifact(data, mime_type="application/json")
        answer = structured(host.call("read_page_content", {"artifactId": artifact}))
        assert answer["pages"][0]["sections"][0]["text"] == data.decode()
