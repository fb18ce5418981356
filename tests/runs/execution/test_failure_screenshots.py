"""A step that failed on a page stores a screenshot of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from artifacts.chunks import read_chunk
from artifacts.models import Artifact
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.security.masking import Masker
from decisions.identity.principals import Principal
from runners.browser.page_scripts import visible_text_script
from runners.browser.reading.screenshot import save_screenshot
from runs.models import Run
from runs.sessions.services import create_session
from runs.submission.submit import submit_run
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer, serve_pages
from tests.support.runs.worker_rows import error_of

ExecuteRun = Callable[[str], Run]
CANARY = "canary-4471"


@pytest.fixture
def pages() -> Iterator[PageServer]:
    with serve_pages() as server:
        yield server


def start(principal: Principal, template_id: str, **inputs: Any) -> str:
    options = {"mode": "async", "timeoutMs": 60000}
    return submit_run(
        principal=principal, template_id=template_id, inputs=inputs, options=options
    ).run_id


def start_in(
    principal: Principal, session_id: str, template_id: str, inputs: dict[str, Any]
) -> str:
    options = {"mode": "async", "timeoutMs": 60000}
    submitted = submit_run(
        principal=principal,
        template_id=template_id,
        inputs=inputs,
        session_id=session_id,
        options=options,
    )
    return submitted.run_id


@pytest.mark.slow
def test_a_missing_field_stores_a_screenshot_of_the_page(
    principal: Principal, execute_run: ExecuteRun, pages: PageServer
) -> None:
    url = pages.add("/no-field", "<title>Bare</title><h1>Nothing to fill in</h1>")
    query = {"mode": "semantic", "query": "search"}
    run = execute_run(
        start(principal, "search_extract", startUrl=url, query="q", searchField=query)
    )
    assert error_of(run)["errorCode"] == "ELEMENT_NOT_FOUND"
    screenshot = Artifact.objects.get(run_id=run.id, kind="screenshot")
    assert error_of(run)["details"]["screenshotArtifactId"] == screenshot.id
    chunk = read_chunk(principal=principal, artifact_id=screenshot.id)
    assert chunk["mimeType"] == "image/jpeg"
    assert screenshot.step_index == error_of(run)["step"]["step"]


def shadow(markup: str) -> str:
    return f"<div><template shadowrootmode=open>{markup}</template></div>"


def frame(markup: str) -> str:
    return f"<iframe srcdoc='{markup}'></iframe>"


def stores_screenshot(reader: Reader, pages: PageServer, markup: str) -> bool:
    """Return whether a screenshot of a page was stored, in a run whose secret is the canary."""
    context = replace(reader.context(), mask=Masker([CANARY]).text)
    url = pages.add("/page", f"<title>Page</title><h1>Page</h1>{markup}")
    assert reader.call("open_page", url=url).ok
    return reader.wait(save_screenshot(context)) is not None


@pytest.mark.parametrize(
    "wrap",
    [
        *(pytest.param(wrap, marks=pytest.mark.slow) for wrap in (str, shadow, frame)),
        lambda markup: shadow(frame(markup)),
    ],
)
@pytest.mark.parametrize(
    "field",
    [
        f"<input value={CANARY}>",
        f"<textarea>{CANARY}</textarea>",
        f"<input placeholder={CANARY}>",
        f"<select><option>{CANARY}</select>",
        f"<p contenteditable>{CANARY}</p>",
        f"<p role=textbox><b>{CANARY}</b></p>",
    ],
)
def test_a_field_that_holds_a_secret_is_emptied_in_every_frame_and_shadow_root(
    open_reader: Callable[..., Reader],
    page_server: PageServer,
    field: str,
    wrap: Callable[[str], str],
) -> None:
    reader = open_reader()
    assert stores_screenshot(reader, page_server, wrap(field))
    [tab] = reader.session.open_tabs()
    shown = reader.wait(tab.call(visible_text_script(), [], lambda: 10.0))
    assert CANARY not in str(shown)
    assert len(shown["fields"]) == 1


@pytest.mark.parametrize("wrap", [str, shadow, frame, lambda markup: frame(shadow(markup))])
@pytest.mark.parametrize("text", [CANARY, f"<p>{CANARY}", f"<button>{CANARY}</button>"])
def test_a_page_that_displays_a_secret_has_no_screenshot(
    open_reader: Callable[..., Reader],
    page_server: PageServer,
    text: str,
    wrap: Callable[[str], str],
) -> None:
    assert not stores_screenshot(open_reader(), page_server, wrap(text))


@pytest.mark.parametrize("template_id", ["submit_and_verify", "batch_extract_pages"])
def test_a_run_that_is_denied_its_first_page_has_no_screenshot_of_an_earlier_run(
    principal: Principal,
    execute_run: ExecuteRun,
    pages: PageServer,
    settings: Any,
    template_id: str,
) -> None:
    settings.TRACE = "always"
    session_id = create_session(principal=principal)["sessionId"]
    pages.add("/done", "<title>Done</title>Thank you")
    url = pages.add("/page", "<title>Mine</title><form action=/done><input name=q></form>")
    name = {"name": "q", "value": "a", "locator": {"mode": "selector", "selector": "input"}}
    inputs = {"urls": [url]} if "batch" in template_id else {"startUrl": url, "fields": [name]}
    assert execute_run(start_in(principal, session_id, template_id, inputs)).status == "succeeded"
    for tool in ("open_page", "read_page"):
        create_rule(RuleFields("deny", tool=tool, reason="test"), actor="test")
    denied = execute_run(start_in(principal, session_id, template_id, inputs))
    assert denied.status == "failed"
    assert not Artifact.objects.filter(run_id=denied.id, kind__in=["screenshot", "trace"]).exists()


def test_an_unreachable_address_has_no_screenshot(
    principal: Principal, execute_run: ExecuteRun
) -> None:
    run = execute_run(
        start(principal, "batch_extract_pages", urls=["http://127.0.0.1:9/", "file:///x"])
    )
    assert run.status == "failed"
    assert not Artifact.objects.filter(run_id=run.id, kind="screenshot").exists()
