"""Late requests of a remote caller's page, after it was read: blocked, and reported at run end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from decisions.identity.principals import Principal
from runners.browser.session.refused_requests import MAX_REPORTED, late_warnings
from runners.network.failed_connections import FailedConnections
from runs.models import Run
from runs.submission.submit import submit_run
from tests.support.browser.forbidden_server import ForbiddenServer
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import Page, PageServer, html

Publish = Callable[[str, Page | str], str]


def request_later(reader: Reader, url: str) -> None:
    """Have the page of the session request an address after it was read."""
    (tab,) = reader.session.open_tabs()
    reader.wait(tab.page.evaluate("url => fetch(url, {mode: 'no-cors'}).catch(() => 0)", url))


def test_a_late_blocked_request_is_reported_once(
    remote_reader: Reader, publish: Publish, forbidden_server: ForbiddenServer
) -> None:
    started_at = time.monotonic()
    assert remote_reader(publish("/calm", "<title>Calm</title>"))["warnings"] == []
    assert remote_reader.session.late_refusals(started_at) == []
    for _ in range(2):
        request_later(remote_reader, forbidden_server.url("localhost"))
    expected = "Blocked: a page later requested localhost, which is not a public address."
    assert remote_reader.session.late_refusals(started_at) == [expected]
    assert remote_reader.session.late_refusals(started_at) == []
    assert forbidden_server.visits == 0


def test_an_address_is_reported_once_per_run(
    remote_reader: Reader, publish: Publish, forbidden_server: ForbiddenServer
) -> None:
    started_at = time.monotonic()
    page = remote_reader(publish("/img", f"<title>I</title><img src='{forbidden_server.url()}'>"))
    assert len(page["warnings"]) == 1
    request_later(remote_reader, forbidden_server.url())
    assert remote_reader.session.late_refusals(started_at) == []
    next_run = time.monotonic()
    request_later(remote_reader, forbidden_server.url())
    assert len(remote_reader.session.late_refusals(next_run)) == 1


def test_the_number_of_reported_addresses_is_limited() -> None:
    outcomes = FailedConnections()
    for number in range(MAX_REPORTED + 7):
        outcomes.record(f"h{number}.example", 80, "forbidden")
    outcomes.record("away.example", 80, "ERR_CONNECTION_REFUSED")
    warnings = late_warnings(outcomes, 0.0)
    assert len(warnings) == MAX_REPORTED + 1
    assert warnings[-1] == "Blocked: 7 more addresses that are not public."


@pytest.mark.slow
def test_the_end_of_a_run_reports_late_blocked_requests(
    remote: Principal,
    execute_run: Callable[[str], Run],
    page_server: PageServer,
    forbidden_server: ForbiddenServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CONTINUITY_EGRESS_ALLOW", f"127.0.0.1:{page_server.server_port}")
    script = f"fetch('{forbidden_server.url('localhost')}', {{mode: 'no-cors', keepalive: true}})"
    urls = [
        page_server.add(
            "/late",
            f"""<title>Late</title><script>
            setTimeout(() => {script}, 4000); addEventListener('pagehide', () => {script});
        </script>""",
        ),
        page_server.add("/slow", html("<title>Slow</title>", delay=8)),
    ]
    inputs = {"urls": urls}
    run = execute_run(
        submit_run(
            principal=remote,
            template_id="batch_extract_pages",
            inputs=inputs,
            options={"mode": "async", "timeoutMs": 60_000},
        ).run_id
    )
    assert run.status == "succeeded", run.error
    assert "requested localhost, which is not a public" in json.dumps([run.warnings, run.result])
    assert forbidden_server.visits == 0


@pytest.mark.slow
def test_a_blocked_document_is_reported_as_a_failure_without_a_warning(
    remote: Principal,
    execute_run: Callable[[str], Run],
    page_server: PageServer,
    forbidden_server: ForbiddenServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CONTINUITY_EGRESS_ALLOW", f"127.0.0.1:{page_server.server_port}")
    refresh = f"<title>R</title><meta http-equiv=refresh content='0;url={forbidden_server.url()}'>"
    urls = [page_server.add("/refresh", refresh), page_server.url("/plain")]
    run = execute_run(
        submit_run(
            principal=remote,
            template_id="batch_extract_pages",
            inputs={"urls": urls},
            options={"mode": "async", "timeoutMs": 60_000},
        ).run_id
    )
    assert run.status == "partial_success"
    assert run.warnings == []
    assert "URL_BLOCKED" in json.dumps(run.result)
