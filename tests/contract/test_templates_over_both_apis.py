"""Test that templates that work on pages succeed when submitted over REST and over MCP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from decisions.identity.principals import Principal
from decisions.memory.objects import put_success_path
from tests.contract.api_client import Answer, Surface
from tests.support.browser.login_site import PASSWORD, USERNAME
from tests.support.browser.template_sites import Site, by_text
from tests.support.decisions.continuity import SUCCESS_PATH

SELECTORS = {"mode": "selector", "usernameSelector": "#u", "passwordSelector": "#p"}
WELCOME = {"type": "textIncludes", "value": "Log out", "timeoutMs": 30_000}
THANKS = {"type": "textIncludes", "value": "Thank you", "timeoutMs": 30_000}
RunTemplate = Callable[..., Answer]


@pytest.fixture(params=["mcp", "rest"])
def surface(request: pytest.FixtureRequest, web: str, token: str) -> Iterator[Surface]:
    """Return a client of REST and of MCP in turn, for a caller of trust level local."""
    client = Surface(web, token, over=request.param)
    yield client
    client.close()


@pytest.fixture
def run_template(surface: Surface, background_worker: None, close_browser: None) -> RunTemplate:
    """Return a function that submits a run and waits until it ends:
    `run("paginated_extract", startUrl=…)`.
    """

    def make(template_id: str, session_id: str | None = None, **inputs: Any) -> Answer:
        session = {"sessionId": session_id} if session_id else {}
        handle = surface.call(
            "run_task_template",
            templateId=template_id,
            inputs=inputs,
            options={"mode": "async", "timeoutMs": 200_000},
            **session,
        )
        ended = handle
        while ended["status"] in ("queued", "running"):
            ended = surface.call("wait_task_run", runId=handle["runId"], waitMs=55_000)
        assert ended["status"] == "succeeded", ended
        return dict(ended["result"])

    return make


@pytest.mark.slow
def test_a_list_is_read_page_by_page(run_template: RunTemplate, site: Site) -> None:
    pagination = {"next": by_text("next page"), "maxPages": 2}
    result = run_template("paginated_extract", startUrl=site.url("/list"), pagination=pagination)
    assert [page["title"] for page in result["pages"]] == ["List 1", "List 2"]
    assert result["stoppedReason"] == "max_pages"


@pytest.mark.slow
def test_a_form_is_submitted_once_and_its_answer_is_read(
    run_template: RunTemplate, site: Site
) -> None:
    fields = [{"name": "name", "value": "Ada 王", "locator": by_text("your name")}]
    contact = site.url("/contact")
    result = run_template(
        "submit_and_verify", startUrl=contact, fields=fields, successIndicator=THANKS
    )
    assert (result["success"], result["indicatorMatched"]) == (True, True)
    ((path, sent),) = site.server.forms
    assert (path, sent["name"]) == ("/sent", "Ada 王")


def test_pages_are_compared(run_template: RunTemplate, site: Site) -> None:
    urls = [site.url("/article"), site.url("/sent")]
    result = run_template("multi_tab_compare", urls=urls)
    assert result["summary"]["succeeded"] == 2
    assert "title" in {diff["field"] for diff in result["diffs"]}


@pytest.mark.slow
def test_a_login_is_stored_for_the_next_run(run_template: RunTemplate, members_site: str) -> None:
    credentials = {"username": USERNAME, "password": PASSWORD}
    login = run_template(
        "login_keep_session",
        startUrl=f"{members_site}/login",
        credentials=credentials,
        fields=SELECTORS,
        successIndicator=WELCOME,
    )
    assert (login["success"], login["loginState"]) == (True, "authenticated")
    read = run_template(
        "batch_extract_pages", session_id=login["sessionId"], urls=[login["finalUrl"]]
    )
    assert read["items"][0]["title"] == login["title"]


@pytest.mark.slow
def test_a_success_path_is_replayed(
    run_template: RunTemplate, site: Site, principal: Principal
) -> None:
    written = put_success_path(principal=principal, call={**SUCCESS_PATH, "user_id": "alice"})
    object_id = written["item"]["object_id"]
    result = run_template(
        "replay_success_path", objectId=object_id, slots={"url": site.url("/article")}
    )
    assert (result["objectId"], result["version"]) == (object_id, 1)
    assert "Read me to the end" in str(result["results"][0]["output"])
