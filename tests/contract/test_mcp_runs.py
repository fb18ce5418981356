"""Test the S0 checklist over MCP: modes, runs, lists, cancels, keys, artifacts, the profile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from mcp_server.protocol.prompts import JOB_PROMPTS
from runs.models import Run
from tests.contract.mcp_host import Host, error_of, structured

TRANSPORTS = ("stdio", "http", "sse")

HANDLE_FIELDS = {"runId", "sessionId", "status", "mode", "deduplicated"}


def job(*do: str, **options: Any) -> dict[str, Any]:
    return {"templateId": "test_stepwise", "inputs": {"do": list(do)}, "options": options}


def call(host: Host, tool: str, **arguments: Any) -> dict[str, Any]:
    return structured(host.call(tool, arguments))


def run(host: Host, *do: str, **options: Any) -> dict[str, Any]:
    return call(host, "run_task_template", **job(*do, **options))


@pytest.mark.usefixtures("background_worker")
def test_a_brief_answer_leaves_the_result_out(host: Host) -> None:
    answer = call(host, "run_task_template", **job("ok", mode="sync"), brief=True)
    shown = {"progress", "resultSummary"}
    assert set(answer) - shown == HANDLE_FIELDS, answer
    assert answer["status"] == "succeeded"
    failed = call(host, "run_task_template", **job("fail", mode="sync"), brief=True)
    assert failed["error"]["errorCode"]
    waited = call(host, "wait_task_run", runId=answer["runId"], brief=True)
    assert set(waited) - shown == {"runId", "status"}, waited
    assert call(host, "wait_task_run", runId=answer["runId"])["result"] is not None


def test_a_whole_number_with_a_fraction_of_zero_is_a_number(host: Host) -> None:
    assert structured(host.call("list_task_runs", b'{"limit":5.0,"offset":0.0}'))["total"] == 0


def test_the_profile_is_complete(host: Host, remote_host: Host) -> None:
    profile = call(host, "get_runtime_profile")
    assert profile == {
        "maxConcurrentRuns": 5,
        "maxUrls": 1000,
        "maxTabsPerSession": 20,
        "syncTimeoutMs": 300_000,
        "asyncTimeoutMs": 600_000,
        "artifactMaxChunkSize": 262_144,
        "artifactTtlMs": 86_400_000,
        "runTtlMs": 1_800_000,
        "supportedModes": ["sync", "async", "auto"],
        "trustLevel": "local",
        "isRemote": False,
    }
    assert call(remote_host, "get_runtime_profile")["isRemote"] is True


def test_a_template_is_listed_with_schemas_and_examples(host: Host) -> None:
    listed = call(host, "list_task_templates", brief=False)
    batch = {each["templateId"]: each for each in listed["templates"]}["batch_extract_pages"]
    assert batch["inputSchema"]["properties"]["urls"]["maxItems"] == 1000
    assert batch["exampleInputs"]
    assert batch["trustLevelSupport"] == ["local", "remote"]


def test_the_templates_are_listed_briefly_and_one_by_its_id_in_full(host: Host) -> None:
    listed = call(host, "list_task_templates")
    assert len(orjson.dumps(listed)) <= 4096
    batch = {each["templateId"]: each for each in listed["templates"]}["batch_extract_pages"]
    assert set(batch) == {"templateId", "description", "exampleInputs"}
    (one,) = call(host, "list_task_templates", templateId="batch_extract_pages")["templates"]
    assert one["inputSchema"]["properties"]["urls"]["maxItems"] == 1000
    missing = error_of(host.call("list_task_templates", {"templateId": "nope"}))
    assert missing["errorCode"] == "TEMPLATE_NOT_FOUND"


def test_prompts_start_the_usual_jobs_and_name_what_is_missing(host: Host) -> None:
    prompts = host.request("prompts/list", {})["result"]["prompts"]
    names = {prompt["name"]: prompt for prompt in prompts}
    assert set(names) == set(JOB_PROMPTS)
    arguments = {one["name"]: "x{y}" for one in names["read_pages"]["arguments"]}
    got = host.request("prompts/get", {"name": "read_pages", "arguments": arguments})["result"]
    (message,) = got["messages"]
    assert "x{y}" in message["content"]["text"]
    templates = {one["templateId"] for one in call(host, "list_task_templates")["templates"]}
    for job in JOB_PROMPTS.values():
        assert any(template in job.text for template in templates)
    missing = host.request("prompts/get", {"name": "read_pages", "arguments": {"urls": "a"}})
    assert missing["error"]["message"].startswith("question:")
    unknown = host.request("prompts/get", {"name": "nope"})
    assert unknown["error"]["data"]["errorCode"] == "INVALID_PARAMETER"


def test_a_wait_ends_when_its_time_has_expired(host: Host) -> None:
    handle = run(host, "ok", mode="async")
    began = time.monotonic()
    shown = call(host, "wait_task_run", runId=handle["runId"], waitMs=300)
    assert shown["status"] == "queued"
    assert 0.2 < time.monotonic() - began < 5


def test_waiting_returns_at_once_for_a_run_that_waits_for_an_answer_and_it_accepts_one(
    host: Host, make_run: Callable[..., Run]
) -> None:
    question = {"type": "answer", "question": "Which one?", "expiresAt": 1_900_000_000_000}
    waiting_run = make_run(status="running", ready=False, waiting_for=question)
    shown = call(host, "wait_task_run", runId=waiting_run.id, waitMs=50_000)
    assert shown["waitingFor"] == question
    answer = call(host, "answer_task_run", runId=waiting_run.id, answer="the first")
    assert answer == {"success": True, "runId": waiting_run.id, "status": "running"}
    again = host.call("answer_task_run", {"runId": waiting_run.id, "answer": "the second"})
    assert error_of(again)["errorCode"] == "INVALID_PARAMETER"


def test_a_call_waits_for_events_and_returns_those_after_the_readers_seq(host: Host) -> None:
    handle = run(host, "ok", mode="async")
    request = host.start_call(
        "subscribe_task_run_events", {"runId": handle["runId"], "after": 1, "waitMs": 30_000}
    )
    call(host, "cancel_task_run", runId=handle["runId"])
    page = structured(host.answer_to(request))
    assert [event["type"] for event in page["events"]] == ["run.canceled"]
    assert (page["lastSeq"], page["terminal"]) == (2, True)
