"""A step that failed on a page stores a Playwright trace of it, which contains no secret."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client

from artifacts.expiry import expire_artifacts_of
from artifacts.models import Artifact
from artifacts.selectors import open_content
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.errors import ArtifactExpired
from decisions.identity.principals import Principal
from runners.browser.pool.runtime import BrowserRuntime, get_runtime
from runs.models import Run
from runs.submission.retry import retry_run
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageResponse, PageServer, html, serve_pages
from tests.support.decisions.confirmations import answer_confirmation, reload_run
from tests.support.runs.worker_rows import error_of

ExecuteRun = Callable[[str], Run]
TraceLine = dict[str, Any]
MISSING = {"mode": "selector", "selector": "#nowhere"}
SEARCH = {"mode": "selector", "selector": "[name=q]"}
LEAKY = """<title>Leaky</title><meta name=csrf-token content=canary-meta-0123>
<script>
console.log("canary-logged-0123");
console.error("the page complains");
document.cookie = "mine=canary-script-cookie-0123";
fetch("/api/me?api_key=canary-query-0123", {method: "POST", body: "canary-posted-0123",
  headers: {Authorization: "Bearer canary-header-0123"}});
</script>
<style>h1 { color: teal }</style><link rel=stylesheet href=/look.css>
<h1 data-props='{"key": "canary-props-0123", "filler": "xxxxxxxxxxxxxxxxxxxxxxxxxxx"}'>
Members</h1><p>You typed canary-password-0123, and PIN 48215.</p>
<a href="/next?access_token=canary-link-0123&page=2">Next</a>
<form><input name=q value=canary-plain-0123><input type=password value=canary-password-0123>
<input type=hidden name=csrfmiddlewaretoken value=canary-hidden-0123>
<input name=pin value=48215><textarea name=api_key>canary-area-0123</textarea></form>
<div contenteditable=true aria-label="Recovery code">canary-editable-0123</div>"""


@pytest.fixture
def pages() -> Iterator[PageServer]:
    with serve_pages() as server:
        cookie = {"Set-Cookie": "sid=canary-cookie-0123; HttpOnly"}
        server.add("/leaky", html(LEAKY, headers=cookie))
        server.add("/look.css", PageResponse(b"p { color: red }", mime="text/css", headers=cookie))
        server.add(
            "/api/me", PageResponse(b'{"token": "canary-json-0123"}', mime="application/json")
        )
        server.add("/search", html("<title>Search</title><form><input name=q></form>"))
        yield server


@pytest.fixture
def search(principal: Principal, pages: PageServer) -> Callable[..., str]:
    """Submit a search on a page and return its run's id; it fails where the field is NOWHERE."""

    def submit(path: str = "/leaky", **inputs: Any) -> str:
        default_inputs = {
            "startUrl": pages.url(path),
            "query": "canary-typed-0123",
            "searchField": SEARCH,
        }
        return submit_run(
            principal=principal,
            template_id="search_extract",
            inputs=default_inputs | inputs,
            options={"mode": "async", "timeoutMs": 60_000},
        ).run_id

    return submit


def trace_of(principal: Principal, run: Run) -> dict[str, bytes]:
    """Return the files of the trace that the run's error names."""
    artifact_id = error_of(run)["details"]["traceArtifactId"]
    row, file = open_content(principal=principal, artifact_id=artifact_id)
    assert (row.name, row.mime_type, row.kind) == ("trace.zip", "application/zip", "trace")
    with file, zipfile.ZipFile(io.BytesIO(file.read())) as trace:
        assert trace.testzip() is None
        return {name: trace.read(name) for name in trace.namelist()}


def lines_of(files: dict[str, bytes], name: str = "trace.trace") -> list[TraceLine]:
    """Return the lines of one of them."""
    return [json.loads(line) for line in files[name].splitlines()]


def recordings_on_disk() -> list[Path]:
    """Return the files in the driver's folder for recordings."""
    folder = get_runtime()._traces.path
    assert folder is not None
    return list(folder.rglob("*"))


def nodes_in(node: Any) -> Iterator[list[Any]]:
    """Yield the elements of a snapshot."""
    if isinstance(node, list) and node and isinstance(node[0], str):
        yield node
        for child in node[2:]:
            yield from nodes_in(child)


@pytest.mark.slow
def test_a_failed_step_names_a_trace_that_ends_with_the_page_at_that_time(
    principal: Principal, execute_run: ExecuteRun, search: Callable[..., str]
) -> None:
    run = execute_run(search(searchField=MISSING))
    assert error_of(run)["errorCode"] == "ELEMENT_NOT_FOUND"
    assert "screenshotArtifactId" in error_of(run)["details"]
    lines = lines_of(trace_of(principal, run))
    first, group = lines[0], next(line for line in lines if line.get("title"))
    assert (first["type"], first["origin"]) == ("context-options", "library")
    assert group["title"] == "enter the query: ELEMENT_NOT_FOUND"
    snapshots = [line["snapshot"] for line in lines if line["type"] == "frame-snapshot"]
    calls = {line["callId"] for line in lines if line["type"] == "before"}
    assert {snapshot["callId"] for snapshot in snapshots} <= calls
    shown = {node[0]: node for node in nodes_in(snapshots[0]["html"])}
    assert shown["TITLE"][2] == "Leaky"
    assert "Members" in shown["H1"][2]


@pytest.mark.parametrize("trace", ["retry", "always"])
def test_no_canary_of_the_page_is_in_its_trace(
    principal: Principal,
    execute_run: ExecuteRun,
    search: Callable[..., str],
    settings: Any,
    trace: str,
) -> None:
    settings.TRACE = trace
    condition = {"type": "selector", "value": "#never", "timeoutMs": 500}
    files = trace_of(principal, execute_run(search(waitForResults=condition)))
    everything = b"\n".join([*files.values(), *(name.encode() for name in files)])
    for secret in (b"canary", b"48215"):
        position = everything.find(secret)
        assert position < 0, everything[max(0, position - 200) : position + 60]
    assert b"/tmp/" not in everything
    assert not any(name.endswith(".stacks") for name in files)


@pytest.mark.slow
def test_a_full_trace_contains_steps_requests_and_console_messages(
    principal: Principal, execute_run: ExecuteRun, search: Callable[..., str], settings: Any
) -> None:
    settings.TRACE = "always"
    condition = {"type": "selector", "value": "#never", "timeoutMs": 500}
    files = trace_of(principal, execute_run(search(waitForResults=condition)))
    titles = [line["title"] for line in lines_of(files) if line.get("title")]
    assert titles == [
        "open the page",
        "enter the query",
        "submit the search",
        "wait for the results",
        "wait for the results: NAVIGATION_TIMEOUT",
    ]
    logged = [line["text"] for line in lines_of(files) if line["type"] == "console"]
    assert set(logged) == {"the page complains"}
    requests = [line["snapshot"] for line in lines_of(files, "trace.network")]
    paths = {(one["request"]["method"], urlsplit(one["request"]["url"]).path) for one in requests}
    assert {("GET", "/leaky"), ("POST", "/api/me"), ("GET", "/look.css")} <= paths
    styles = [one["response"]["content"].get("_file") for one in requests]
    assert any(name and files[name] == b"p { color: red }" for name in styles)


@pytest.mark.slow
def test_a_retry_of_a_failed_run_is_recorded_from_its_first_page(
    principal: Principal, execute_run: ExecuteRun, search: Callable[..., str]
) -> None:
    first = execute_run(search(searchField=MISSING))
    again = execute_run(retry_run(principal=principal, run_id=first.id).run_id)
    titles = [line["title"] for line in lines_of(trace_of(principal, again)) if line.get("title")]
    assert titles == ["enter the query", "enter the query: ELEMENT_NOT_FOUND"]
    network = lines_of(trace_of(principal, again), "trace.network")
    paths = {line["snapshot"]["request"]["url"].rpartition("/")[2] for line in network}
    assert "leaky" in paths  # in the order of their responses


def test_a_run_with_secret_inputs_is_never_traced(
    principal: Principal, execute_run: ExecuteRun, pages: PageServer, settings: Any
) -> None:
    settings.TRACE = "always"
    field = {"name": "pin", "value": "canary-0123", "locator": SEARCH, "secret": True}
    run = execute_run(
        submit_run(
            principal=principal,
            template_id="submit_and_verify",
            inputs={"startUrl": pages.url("/leaky"), "fields": [field], "submit": MISSING},
            options={"mode": "async"},
        ).run_id
    )
    assert error_of(run)["errorCode"] == "ELEMENT_NOT_FOUND"
    assert "traceArtifactId" not in error_of(run)["details"]
    assert not Artifact.objects.filter(run_id=run.id, kind="trace").exists()


@pytest.mark.slow
def test_traces_can_be_turned_off_and_batches_have_none(
    principal: Principal,
    execute_run: ExecuteRun,
    search: Callable[..., str],
    settings: Any,
    pages: PageServer,
) -> None:
    urls = [pages.url("/hang-up"), pages.url("/plain")]
    batch = submit_run(
        principal=principal,
        template_id="batch_extract_pages",
        inputs={"urls": urls},
        options={"mode": "async"},
    )
    assert execute_run(batch.run_id).status == "partial_success"
    settings.TRACE = "never"
    assert "traceArtifactId" not in error_of(execute_run(search(searchField=MISSING)))["details"]
    assert not Artifact.objects.filter(kind="trace").exists()


@pytest.mark.parametrize("trace", ["retry", "always"])
def test_no_recording_is_left_on_disk(
    execute_run: ExecuteRun, search: Callable[..., str], settings: Any, trace: str
) -> None:
    settings.TRACE = trace
    assert execute_run(search("/search")).status == "succeeded"
    assert execute_run(search(searchField=MISSING)).status == "failed"
    assert not recordings_on_disk()


def test_a_recording_leaves_no_lines_on_disk_while_another_continues(
    open_reader: Callable[..., Reader], page_server: PageServer, browser_runtime: BrowserRuntime
) -> None:
    recording, taken, dropped = open_reader(), open_reader(), open_reader()
    for reader in (recording, taken, dropped):
        reader.wait(reader.session.tracer.record("read"))
        reader.call("open_page", url=page_server.add("/page", "<title>Page</title>"))
    assert taken.wait(taken.session.tracer.take(None, "over"))
    dropped.wait(dropped.session.tracer.drop())
    folder = browser_runtime._traces.path
    assert folder is not None
    file_names = {file.name.partition(".")[0] for file in folder.iterdir() if file.is_file()}
    assert {name.partition("-")[0] for name in file_names} == {recording.session.tracer._file_name}


@pytest.mark.slow
def test_a_run_that_waits_for_a_person_records_nothing(
    search: Callable[..., str], settings: Any, worker: WorkerProcess
) -> None:
    settings.TRACE = "always"
    create_rule(RuleFields("confirm", tool="submit_form", reason="test"), actor="test")
    run = Run.objects.get(id=search())
    worker.work()
    assert reload_run(run).waiting_for
    assert not recordings_on_disk()
    answer_confirmation(run)
    worker.work()
    assert reload_run(run).status == "succeeded", reload_run(run).error


@pytest.mark.slow
def test_a_page_that_hangs_loses_its_trace_but_does_not_fail_the_run(
    execute_run: ExecuteRun, search: Callable[..., str], pages: PageServer
) -> None:
    hangs = "<title>H</title><input name=q><button onclick='for(;;);'>Go</button>"
    pages.add("/hangs", hangs)
    button = {"mode": "selector", "selector": "button"}
    run = execute_run(search("/hangs", submit=button))
    assert run.status == "failed"
    assert not recordings_on_disk()


@pytest.mark.slow
def test_the_admin_lists_a_trace_and_it_expires_with_the_other_artifacts(
    principal: Principal,
    execute_run: ExecuteRun,
    search: Callable[..., str],
    superuser_client: Client,
) -> None:
    run = execute_run(search(searchField=MISSING))
    trace = Artifact.objects.get(run_id=run.id, kind="trace")
    page = superuser_client.get(f"/admin/runs/run/{run.id}/change/").content.decode()
    assert trace.id in page
    assert "trace.zip" in page
    expire_artifacts_of([run.id])
    with pytest.raises(ArtifactExpired):
        open_content(principal=principal, artifact_id=trace.id)
