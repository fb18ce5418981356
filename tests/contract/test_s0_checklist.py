"""Test the checklist of S0 §8: one test for each line, over both REST and MCP.

The 16 codes have real causes; page_causes.py has those that only a page can cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from artifacts.models import Artifact
from decisions.identity.principals import TrustLevel, create_token
from runs.models import Run, Slot
from tests.contract.api_client import Answer, Refusal, Surface
from tests.contract.page_error_causes import PAGE_CAUSES, PageCause, Pages
from tests.support.browser.page_server import serve_pages

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
CHUNK_FIELDS = {"artifactId", "mimeType", "totalSize", "offset", "length", "data", "complete"}
PROFILE_FIELDS = {
    "maxConcurrentRuns",
    "maxUrls",
    "maxTabsPerSession",
    "syncTimeoutMs",
    "asyncTimeoutMs",
    "artifactMaxChunkSize",
    "artifactTtlMs",
    "runTtlMs",
    "supportedModes",
    "trustLevel",
    "isRemote",
}


@pytest.fixture(params=["mcp", "rest"])
def surface(request: pytest.FixtureRequest, web: str, token: str) -> Iterator[Surface]:
    """Return a client of REST and of MCP in turn, for a caller of trust level local."""
    client = Surface(web, token, over=request.param)
    yield client
    client.close()


@pytest.mark.usefixtures("background_worker")
def test_run_task_template_meets_the_contract_in_its_three_modes(surface: Surface) -> None:
    sync, handle, auto = (surface.run("ok", mode=mode) for mode in ("sync", "async", "auto"))
    assert set(sync) >= RUN_FIELDS | {"mode", "deduplicated"}
    assert (sync["status"], sync["mode"], sync["result"]) == ("succeeded", "sync", {"done": 1})
    assert set(handle) == {"runId", "sessionId", "status", "mode", "deduplicated"}
    assert (handle["status"] in {"queued", "running"}, handle["mode"]) == (True, "async")
    assert auto["mode"] in {"sync", "async"}


def test_get_task_run_has_the_same_fields_for_running_and_ended_runs(
    surface: Surface, make_run: Callable[..., Run]
) -> None:
    shown = {
        status: surface.call("get_task_run", runId=make_run(status=status, **columns).id)
        for status, columns in (
            ("queued", {}),
            ("running", {}),
            ("succeeded", {"result": {"a": 1}}),
            ("partial_success", {"result": {"a": 1}}),
            ("failed", {}),
            ("canceled", {}),
        )
    }
    for status, run in shown.items():
        assert set(run) >= RUN_FIELDS
        assert run["status"] == status
        assert (run["result"] is not None) is (status in {"succeeded", "partial_success"})
        assert (run["error"] is not None) is (status in {"failed", "canceled"})
        assert 1_700_000_000_000 < run["createdAt"] <= run["updatedAt"]


def test_list_task_runs_counts_the_matching_runs_and_lists_the_newest_first(
    surface: Surface, make_run: Callable[..., Run]
) -> None:
    now = datetime.now(UTC)
    for age in (2, 0, 1):
        make_run(id=f"run_{age}", created_at=now - timedelta(seconds=age))
    make_run(status="failed")
    page = surface.call("list_task_runs", status="queued", limit=2)
    assert ([run["runId"] for run in page["runs"]], page["total"]) == (["run_0", "run_1"], 3)
    assert page["hasMore"] is True
    assert surface.call("list_task_runs", templateId="other")["total"] == 0


@pytest.mark.parametrize("status", ["succeeded", "partial_success", "failed", "canceled"])
def test_cancel_task_run_returns_success_false_and_a_reason_for_a_terminal_run(
    surface: Surface, make_run: Callable[..., Run], status: str
) -> None:
    answer = surface.call("cancel_task_run", runId=make_run(status=status).id)
    assert (answer["success"], answer["status"]) == (False, status)
    assert status in answer["reason"]


def test_the_same_idempotency_key_within_its_window_returns_the_same_run(surface: Surface) -> None:
    first, second = (surface.run("ok", mode="async", idempotencyKey="k") for _ in range(2))
    assert first["runId"] == second["runId"]
    assert (first["deduplicated"], second["deduplicated"]) == (False, True)
    ended_at = datetime.now(UTC) - timedelta(minutes=31)
    Run.objects.update(status="succeeded", ended_at=ended_at, result={})
    assert surface.run("ok", mode="async", idempotencyKey="k")["runId"] != first["runId"]


def test_get_artifact_returns_the_fields_of_a_chunk_and_handles_edge_cases(
    surface: Surface, make_artifact: Callable[..., str]
) -> None:
    name = make_artifact(b"x" * 300_000)
    first = surface.call("get_artifact", artifactId=name)
    assert set(first) == CHUNK_FIELDS
    assert (first["length"], first["totalSize"], first["complete"]) == (262_144, 300_000, False)
    rest = surface.call("get_artifact", artifactId=name, offset=first["length"])
    assert (rest["length"], rest["complete"]) == (300_000 - 262_144, True)
    end = surface.call("get_artifact", artifactId=name, offset=300_000)
    assert (end["data"], end["length"], end["complete"]) == ("", 0, True)
    with pytest.raises(Refusal) as refused:
        surface.call("get_artifact", artifactId=name, offset=300_001)
    assert refused.value.error["errorCode"] == "INVALID_PARAMETER"


def test_get_runtime_profile_is_complete(surface: Surface) -> None:
    profile = surface.call("get_runtime_profile")
    assert set(profile) >= PROFILE_FIELDS
    assert (profile["trustLevel"], profile["isRemote"]) == ("local", False)


@pytest.mark.usefixtures("background_worker")
def test_a_run_over_the_concurrency_limit_is_queued_and_executed_later(surface: Surface) -> None:
    for slot in Slot.objects.all():
        Slot.objects.filter(number=slot.number).update(run_id=f"run_{slot.number}")
    handle = surface.run("ok", mode="async")
    waiting = surface.call("wait_task_run", runId=handle["runId"], waitMs=300)
    assert (handle["status"], waiting["status"]) == ("queued", "queued")
    assert waiting["queue"]["reason"] == "all slots are taken"
    Slot.objects.update(run_id=None)
    ended = surface.call("wait_task_run", runId=handle["runId"], waitMs=30_000)
    assert (ended["status"], ended["result"]) == ("succeeded", {"done": 1})


# --- the sixteen codes ---------------------------------------------------------------------------


def submit(**call: Any) -> Callable[[Surface], Answer]:
    """Return a case that submits a run."""
    inputs = {"inputs": {"urls": ["https://pages.invalid/"]}}
    return lambda surface: surface.call("run_task_template", **(inputs | call))


def step(instruction: str, **options: Any) -> Callable[[Surface], Answer]:
    """Return a case whose run has this one step."""
    return lambda surface: surface.run(instruction, mode="sync", **options)


def canceled(surface: Surface) -> Answer:
    """Cancel a run while its step is running, and return the run."""
    run_id, started = surface.run("sleep:5", mode="async")["runId"], 0
    while not started:
        events = surface.call("subscribe_task_run_events", runId=run_id, waitMs=55_000)["events"]
        started = sum(event["type"] == "step.started" for event in events)
    surface.call("cancel_task_run", runId=run_id)
    return surface.call("get_task_run", runId=run_id)


BATCH = "batch_extract_pages"
CASES: Mapping[str, Callable[[Surface], Answer]] = {
    "SESSION_NOT_FOUND": submit(templateId=BATCH, sessionId="sess_unknown"),
    "INVALID_PARAMETER": submit(templateId=BATCH, inputs={"urls": []}),
    "EXECUTION_ERROR": step("bug"),
    "TEMPLATE_NOT_FOUND": submit(templateId="unknown"),
    "RUN_NOT_FOUND": lambda surface: surface.call("get_task_run", runId="run_unknown"),
    "RUN_TIMEOUT": step("sleep:5", timeoutMs=2000),
    "RUN_CANCELED": canceled,
    "STEP_EXECUTION_FAILED": step("fail"),
    "TEMPLATE_VERSION_UNSUPPORTED": submit(templateId=BATCH, options={"templateVersion": "2.0.0"}),
    "ARTIFACT_NOT_FOUND": lambda surface: surface.call("get_artifact", artifactId="art_unknown"),
    "ARTIFACT_EXPIRED": lambda surface: surface.call("get_artifact", artifactId="art_expired"),
    "TRUST_LEVEL_NOT_ALLOWED": submit(
        templateId=BATCH, inputs={"urls": ["http://127.0.0.1:9/"]}, options={"mode": "sync"}
    ),
}


@pytest.fixture
def expired(make_artifact: Callable[..., str]) -> None:
    """Create an artifact that has expired."""
    now = datetime.now(UTC)
    rows = Artifact.objects.filter(id=make_artifact(b"x"))
    rows.update(id="art_expired", expired_at=now, expires_at=now)


@pytest.mark.usefixtures("background_worker", "expired")
@pytest.mark.parametrize("over", ["mcp", "rest"])
@pytest.mark.parametrize("code", CASES)
def test_each_of_the_16_error_codes_that_needs_no_page_has_a_case(
    web: str, principal: Any, code: str, over: str
) -> None:
    trust: TrustLevel = "remote" if code == "TRUST_LEVEL_NOT_ALLOWED" else "local"
    token = create_token(name="case", trust=trust)
    with closing(Surface(web, token, over=over)) as surface:
        try:
            run = CASES[code](surface)
            error, actions = run["error"], run["nextActions"]
            assert error["step"]["name"]
        except Refusal as refused:
            error = refused.error
            actions = error["nextActions"]
        assert (error["errorCode"], type(error["retryable"])) == (code, bool)
        assert error["message"]
        assert error["recovery"]
        assert actions
        for action in actions:
            assert action["reason"]
            surface.call(action["tool"], **action["args"])  # raises if the call is refused


@pytest.fixture
def pages(members_site: str, close_browser: None) -> Iterator[Pages]:
    """Serve the sites on which the runs fail."""
    with serve_pages() as server:
        yield Pages(server, members_site)


@pytest.mark.slow
@pytest.mark.usefixtures("background_worker")
@pytest.mark.parametrize("code", PAGE_CAUSES)
def test_an_error_caused_by_a_page_reports_the_step_and_the_recovery(
    surface: Surface, pages: Pages, code: str
) -> None:
    cause: PageCause = PAGE_CAUSES[code]
    run = cause.bring_about(surface, pages)
    error = run["error"]
    assert (run["status"], error["errorCode"]) == ("failed", code)
    assert (error["step"]["name"], error["retryable"]) == (cause.step, cause.is_retryable)
    assert error["message"]
    assert error["recovery"]
    screenshot_id = error["details"].get("screenshotArtifactId")
    assert (screenshot_id is not None) is cause.leaves_a_page
    if screenshot_id is not None:
        assert surface.call("get_artifact", artifactId=screenshot_id)["mimeType"] == "image/jpeg"
    pages.repair()
    assert run["nextActions"]
    for action in run["nextActions"]:
        assert action["reason"]
        answer = surface.call(action["tool"], **action["args"])
        if action["tool"] == "run_task_template":
            again = surface.call("wait_task_run", runId=answer["runId"], waitMs=55_000)
            assert again["status"] == "succeeded", again


def test_the_cases_cover_the_sixteen_codes_of_s0() -> None:
    assert len(CASES.keys() | PAGE_CAUSES.keys()) == 16
