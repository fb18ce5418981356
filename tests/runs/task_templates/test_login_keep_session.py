"""Logging in by a form at a real site, and the session in later runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from artifacts.models import Artifact
from decisions.foundation.errors import InvalidInput
from decisions.identity.principals import Principal
from runners.browser.tools import check_login
from runners.models import BrowserSession
from runs.models import Run, RunSecret
from runs.sessions import pooled
from runs.sessions.services import clone_session, close_session, get_session
from runs.submission.retry import retry_run
from runs.submission.submitted_run import SubmittedRun
from tests.support.runs.worker_rows import error_of

SubmitLogin = Callable[..., SubmittedRun]
ExecuteRun = Callable[[str], Run]
SubmitRead = Callable[..., str]
SEMANTIC = {
    "username": {"mode": "semantic", "query": "user name"},
    "password": {"mode": "semantic", "query": "password"},
    "submit": {"mode": "semantic", "query": "log in"},
}


def text_of(run: Run) -> str:
    """Return the text of the only page that a run read."""
    sections = run.result["items"][0]["content"]["sections"]
    return "\n".join(section["text"] for section in sections)


def test_a_login_keeps_its_session_for_the_next_run(
    submit_login: SubmitLogin,
    execute_run: ExecuteRun,
    submit_read_in_session: SubmitRead,
    members_site: str,
    principal: Principal,
) -> None:
    submitted = submit_login()
    run = execute_run(submitted.run_id)
    assert run.status == "succeeded", run.error
    assert run.result == {
        "success": True,
        "sessionId": submitted.run.session_id,
        "finalUrl": f"{members_site}/members",
        "title": "Members",
        "loginState": "authenticated",
        "cookiesSaved": True,
    }
    assert (run.total_steps, run.done_steps, run.owns_session) == (5, 5, False)
    session = get_session(principal=principal, session_id=submitted.run.session_id)
    assert (session["live"], session["usedByRunId"], session["name"]) == (True, None, "127.0.0.1")
    assert session["loggedInUntil"] > session["createdAt"]
    second = execute_run(
        submit_read_in_session(submitted.run.session_id, f"{members_site}/members")
    )
    assert "Visit 2" in text_of(second)
    assert "stored 2" in text_of(second)
    assert second.warnings == []


def test_a_text_finds_the_fields_too(submit_login: SubmitLogin, execute_run: ExecuteRun) -> None:
    run = execute_run(submit_login(fields=SEMANTIC).run_id)
    assert run.status == "succeeded", run.error


def test_without_an_indicator_the_result_is_unknown(
    submit_login: SubmitLogin, execute_run: ExecuteRun
) -> None:
    run = execute_run(submit_login(successIndicator=None).run_id)
    assert (run.status, run.result["loginState"]) == ("succeeded", "unknown"), run.error
    reasons = [action["reason"] for action in run.next_actions]
    assert reasons[1] == "If the login is complete: read pages in this session."
    assert not any("logged-in" in reason for reason in reasons)


def test_a_page_that_still_asks_for_a_password_is_a_failed_login(
    submit_login: SubmitLogin, execute_run: ExecuteRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_login, "FORM_SECONDS", 0.3)
    run = execute_run(submit_login(password="wrong-password", successIndicator=None).run_id)
    error = error_of(run)
    assert (run.status, error["details"]["reason"]) == ("failed", "seems_refused")
    assert "still asks for a password" in error["message"]


def test_an_indicator_that_held_before_the_login_shows_nothing(
    submit_login: SubmitLogin, execute_run: ExecuteRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_login, "FORM_SECONDS", 0.3)
    always = {"type": "urlContains", "value": "http", "timeoutMs": 500}
    run = execute_run(submit_login(successIndicator=always).run_id)
    assert (run.status, run.result["loginState"]) == ("succeeded", "unknown")
    assert "held before the login" in run.warnings[0]
    refused = execute_run(submit_login(password="wrong", successIndicator=always).run_id)
    assert error_of(refused)["details"]["reason"] == "seems_refused"


def test_a_wrong_password_is_explained_and_shown_and_the_session_remains(
    submit_login: SubmitLogin, execute_run: ExecuteRun, principal: Principal
) -> None:
    submitted = submit_login(
        password="wrong-password",
        successIndicator={"type": "selector", "value": "#nothing", "timeoutMs": 500},
    )
    run = execute_run(submitted.run_id)
    error = error_of(run)
    assert (run.status, error["errorCode"]) == ("failed", "STEP_EXECUTION_FAILED")
    assert error["details"]["reason"] == "indicator_not_met"
    assert error["step"]["name"] == "check the login"
    screenshot = Artifact.objects.get(run_id=run.id, kind="screenshot")
    assert error["details"]["screenshotArtifactId"] == screenshot.id
    assert run.next_actions[0]["args"] == {"artifactId": screenshot.id}
    assert get_session(principal=principal, session_id=submitted.run.session_id)["cookies"] > 0


@pytest.mark.slow
def test_a_missing_field_is_named(submit_login: SubmitLogin, execute_run: ExecuteRun) -> None:
    run = execute_run(submit_login(path="/no_form").run_id)
    error = error_of(run)
    assert error["errorCode"] == "TPL_LOGIN_FIELD_NOT_FOUND"
    assert (error["details"]["field"], error["details"]["causeCode"]) == (
        "username",
        "ELEMENT_NOT_FOUND",
    )
    assert run.next_actions[0]["args"]["sessionId"] == run.session_id


@pytest.mark.slow
def test_credentials_are_deleted_once_the_form_is_sent(
    submit_login: SubmitLogin, execute_run: ExecuteRun, principal: Principal
) -> None:
    run_id = submit_login(password="wrong-password").run_id
    assert RunSecret.objects.filter(run_id=run_id).exists()
    run = execute_run(run_id)
    assert not RunSecret.objects.exists()
    assert run.inputs["credentials"] == {"username": "***", "password": "***"}
    with pytest.raises(InvalidInput, match="credentials"):
        retry_run(principal=principal, run_id=run_id)


@pytest.mark.slow
def test_a_login_into_an_existing_session_uses_it(
    submit_login: SubmitLogin,
    execute_run: ExecuteRun,
    members_site: str,
    submit_read_in_session: SubmitRead,
) -> None:
    first = submit_login(path="/no_form")
    execute_run(first.run_id)
    run = execute_run(submit_login(session_id=first.run.session_id).run_id)
    assert (run.session_id, run.status) == (first.run.session_id, "succeeded")


@pytest.mark.slow
def test_a_session_is_restored_with_a_warning_when_its_pages_were_closed(
    submit_login: SubmitLogin,
    execute_run: ExecuteRun,
    submit_read_in_session: SubmitRead,
    members_site: str,
    settings: Any,
) -> None:
    submitted = submit_login()
    execute_run(submitted.run_id)
    settings.SESSION_LIVE_IDLE_S = 0
    pooled.close_unused_sessions("w1")
    assert BrowserSession.objects.get(id=submitted.run.session_id).worker_id is None
    run = execute_run(submit_read_in_session(submitted.run.session_id, f"{members_site}/members"))
    assert "Visit 2" in text_of(run)
    assert "stored 2" in text_of(run)
    assert "restored from its saved state" in run.warnings[0]


def test_a_clone_is_independent_of_its_origin(
    submit_login: SubmitLogin,
    execute_run: ExecuteRun,
    submit_read_in_session: SubmitRead,
    members_site: str,
    principal: Principal,
) -> None:
    submitted = submit_login()
    execute_run(submitted.run_id)
    clone = clone_session(principal=principal, session_id=submitted.run.session_id)["sessionId"]
    close_session(principal=principal, session_id=submitted.run.session_id)
    run = execute_run(submit_read_in_session(clone, f"{members_site}/members"))
    assert "Members" in run.result["items"][0]["title"]


@pytest.mark.slow
def test_a_clone_that_clears_its_cookies_leaves_the_first_logged_in(
    submit_login: SubmitLogin,
    execute_run: ExecuteRun,
    submit_read_in_session: SubmitRead,
    members_site: str,
    principal: Principal,
) -> None:
    submitted = submit_login()
    execute_run(submitted.run_id)
    clone = clone_session(principal=principal, session_id=submitted.run.session_id)["sessionId"]
    state = BrowserSession.objects.get(id=submitted.run.session_id).sealed_state
    execute_run(submit_read_in_session(clone, f"{members_site}/no_form"))
    assert BrowserSession.objects.get(id=submitted.run.session_id).sealed_state == state
    assert "Visit 2" in text_of(
        execute_run(submit_read_in_session(submitted.run.session_id, f"{members_site}/members"))
    )


@pytest.mark.slow
def test_two_runs_in_one_session_work_one_after_the_other(
    submit_login: SubmitLogin,
    execute_run: ExecuteRun,
    submit_read_in_session: SubmitRead,
    members_site: str,
) -> None:
    submitted = submit_login()
    first = submit_read_in_session(submitted.run.session_id, f"{members_site}/members?slow=0.5")
    second = submit_read_in_session(submitted.run.session_id, f"{members_site}/members")
    execute_run(second)
    login, one, two = (Run.objects.get(id=one) for one in (submitted.run_id, first, second))
    times = [login.ended_at, one.started_at, one.ended_at, two.started_at]
    assert times == sorted(times)  # type: ignore[type-var]


def test_a_run_whose_session_was_closed_meanwhile_fails_without_it(
    submit_login: SubmitLogin,
    execute_run: ExecuteRun,
    submit_read_in_session: SubmitRead,
    members_site: str,
    principal: Principal,
) -> None:
    submitted = submit_login()
    execute_run(submitted.run_id)
    waiting = submit_read_in_session(submitted.run.session_id, f"{members_site}/members")
    close_session(principal=principal, session_id=submitted.run.session_id)
    run = execute_run(waiting)
    assert (run.status, error_of(run)["errorCode"]) == ("failed", "SESSION_NOT_FOUND")
