"""Test the S0 checklist over MCP: modes, runs, lists, cancels, keys, artifacts, the profile."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from mcp_server.protocol.prompts import JOB_PROMPTS
from runs.models import Run, Slot
from tests.contract.mcp_host import Host, error_of, structured

TRANSPORTS = ("stdio", "http", "sse")

RUN_FIELDS = {
    "runId",
    "templateId",
    "sessionId",
    "ownsSession",
    "status",
    "progress",
    "metrics",
    "result",
    "error",
    "artifactIds",
    "createdAt",
    "updatedAt",
}
HANDLE_FIELDS = {"runId", "sessionId", "status", "mode", "deduplicated"}
CHUNK_FIELDS = {"artifactId", "mimeType", "totalSize", "offset", "length", "data", "complete"}


def job(*do: str, **options: Any) -> dict[str, Any]:
    return {"templateId": "test_stepwise", "inputs": {"do": list(do)}, "options": options}


def call(host: Host, tool: str, **arguments: Any) -> dict[str, Any]:
    return structured(host.call(tool, arguments))


def run(host: Host, *do: str, **options: Any) -> dict[str, Any]:
    return call(host, "run_task_template", **job(*do, **options))


@pytest.mark.usefixtures("background_worker")
def test_sync_returns_the_terminal_run(host: Host) -> None:
    answer = run(host, "ok", mode="sync")
    assert set(answer) >= RUN_FIELDS | {"mode", "deduplicated"}
    assert (answer["status"], answer["mode"], answer["error"]) == ("succeeded", "sync", None)
    assert answer["progress"] == {"doneSteps": 1, "totalSteps": 1}


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


def test_async_returns_the_handle_only(host: Host) -> None:
    answer = run(host, "ok", mode="async")
    assert set(answer) == HANDLE_FIELDS
    assert (answer["status"], answer["mode"]) == ("queued", "async")


@pytest.mark.usefixtures("background_worker")
def test_auto_reports_the_mode_it_chose(host: Host) -> None:
    assert run(host, "ok", mode="auto")["mode"] == "sync"
    assert run(host, "ok")["mode"] == "sync"


def test_auto_does_not_wait_if_no_slot_is_free(host: Host) -> None:
    for slot in Slot.objects.all():
        Slot.objects.filter(number=slot.number).update(run_id=f"run_{slot.number}")
    assert run(host, "ok")["mode"] == "async"


def test_an_unfinished_run_has_neither_result_nor_error(host: Host) -> None:
    handle = run(host, "ok", mode="async")
    shown = call(host, "get_task_run", runId=handle["runId"])
    assert (shown["status"], shown["result"], shown["error"]) == ("queued", None, None)
    assert shown["queue"]["position"] == 1
    assert abs(shown["createdAt"] - time.time() * 1000) < 60_000


@pytest.mark.usefixtures("background_worker")
def test_a_failed_run_is_a_successful_call_with_an_explanation(host: Host) -> None:
    answer = run(host, "fail", mode="sync")
    assert (answer["status"], answer["result"]) == ("failed", None)
    assert {"errorCode", "message", "retryable", "recovery", "at"} <= set(answer["error"])


@pytest.mark.usefixtures("background_worker")
def test_a_partially_failed_run_has_a_result_and_no_error(host: Host) -> None:
    answer = run(host, "ok", "fail", mode="sync")
    assert (answer["status"], answer["error"]) == ("partial_success", None)
    assert answer["result"] == {"done": 1}


@pytest.mark.usefixtures("background_worker")
def test_a_run_past_its_timeout_ends_with_run_timeout(host: Host) -> None:
    answer = run(host, "sleep:30", mode="sync", timeoutMs=300)
    assert (answer["status"], answer["error"]["errorCode"]) == ("failed", "RUN_TIMEOUT")


@pytest.mark.usefixtures("background_worker")
def test_more_runs_than_slots_are_queued_and_then_executed(host: Host) -> None:
    handles = [run(host, "sleep:0.1", mode="async") for _ in range(8)]
    for handle in handles:
        ended = call(host, "wait_task_run", runId=handle["runId"], waitMs=30_000)
        assert ended["status"] == "succeeded"


def test_lists_are_newest_first_and_count_all_that_match(
    host: Host, make_run: Callable[..., Run]
) -> None:
    now = datetime.now(UTC)
    for age, status in enumerate(["queued", "failed", "failed", "succeeded", "failed"]):
        make_run(id=f"run_{age}", status=status, created_at=now - timedelta(seconds=age))
    first = call(host, "list_task_runs", limit=2)
    assert [shown["runId"] for shown in first["runs"]] == ["run_0", "run_1"]
    assert (first["total"], first["hasMore"]) == (5, True)
    failed = call(host, "list_task_runs", status="failed", limit=2, offset=2)
    assert [shown["runId"] for shown in failed["runs"]] == ["run_4"]
    assert (failed["total"], failed["hasMore"], failed["nextCursor"]) == (3, False, None)


def test_a_whole_number_with_a_fraction_of_zero_is_a_number(host: Host) -> None:
    assert structured(host.call("list_task_runs", b'{"limit":5.0,"offset":0.0}'))["total"] == 0


def test_canceling_a_run_that_ended_changes_nothing(
    host: Host, make_run: Callable[..., Run]
) -> None:
    ended = make_run(status="succeeded")
    answer = call(host, "cancel_task_run", runId=ended.id)
    assert (answer["success"], answer["status"]) == (False, "succeeded")
    assert answer["reason"]
    ended.refresh_from_db()
    assert ended.status == "succeeded"


def test_a_repeated_key_reports_whether_the_inputs_match(host: Host) -> None:
    first = run(host, "ok", mode="async", idempotencyKey="k")
    same = run(host, "ok", mode="async", idempotencyKey="k")
    other = run(host, "fail", mode="async", idempotencyKey="k")
    assert first["runId"] == same["runId"] == other["runId"]
    assert (same["inputsMatch"], other["inputsMatch"]) == (True, False)


def test_a_chunk_has_exactly_the_fields_of_the_contract(
    host: Host, make_artifact: Callable[..., str]
) -> None:
    name = make_artifact("käse".encode())
    chunk = call(host, "get_artifact", artifactId=name, limit=2)
    assert set(chunk) == CHUNK_FIELDS
    assert (chunk["data"], chunk["length"], chunk["complete"]) == ("k", 1, False)
    rest = call(host, "get_artifact", artifactId=name, offset=1)
    assert (rest["data"], rest["length"], rest["complete"]) == ("äse", 4, True)
    end = call(host, "get_artifact", artifactId=name, offset=5)
    assert (end["data"], end["length"], end["complete"]) == ("", 0, True)


def test_bytes_are_returned_as_base64_and_sizes_count_raw_bytes(
    host: Host, make_artifact: Callable[..., str]
) -> None:
    name = make_artifact(b"\x00\xff" * 200_000, mime_type="image/png")
    chunk = call(host, "get_artifact", artifactId=name)
    assert (chunk["length"], chunk["totalSize"], chunk["complete"]) == (262_144, 400_000, False)
    assert base64.b64decode(chunk["data"]) == (b"\x00\xff" * 200_000)[:262_144]


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


@pytest.mark.usefixtures("background_worker")
def test_a_wait_without_a_time_waits_until_the_run_ends(host: Host) -> None:
    handle = run(host, "sleep:1", mode="async")
    assert call(host, "wait_task_run", runId=handle["runId"])["status"] == "succeeded"


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
