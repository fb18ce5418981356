"""Named sessions: one run at a time, in the worker that holds the session, for the session's
owner only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import override_settings

from decisions.foundation.errors import Conflict, NoSuchSession, SessionNotFound, TrustNotAllowed
from decisions.identity.principals import Principal, admin_principal
from decisions.models import AuditEntry
from runners.browser_sessions import logged_in_until, read_state, save_state
from runners.models import BrowserSession
from runs.models import Run
from runs.queries.runs import get_run
from runs.queue.lease_expiry import end_leases_of_worker
from runs.queue.leases import lease_run
from runs.queue.session_lease import release_session
from runs.sessions import services as sessions
from runs.submission.cancel import cancel_run
from runs.submission.submit import submit_run
from tests.support.runs.concurrent_calls import at_once
from tests.support.runs.worker_rows import error_of, fresh, must_take, register, take

SubmitIn = Callable[..., str]
STORAGE = {"cookies": [{"name": "sessionid", "value": "c00kie-value", "expires": 4e9}]}


@pytest.fixture
def session_id(principal: Principal) -> str:
    """The id of an open session of the local principal."""
    return str(sessions.create_session(principal=principal, name="shop")["sessionId"])


@pytest.fixture
def submit_in(principal: Principal) -> SubmitIn:
    """Submit a run in a session and return its id."""

    def make(session_id: str, *, caller: Principal = principal) -> str:
        return submit_run(
            principal=caller,
            template_id="test_stepwise",
            inputs={"do": ["ok"]},
            session_id=session_id,
            options={"mode": "async"},
        ).run_id

    return make


def test_a_second_run_waits_for_the_first_and_reports_the_reason(
    submit_in: SubmitIn, session_id: str, principal: Principal
) -> None:
    first, second = submit_in(session_id), submit_in(session_id)
    assert must_take("w1").run.id == first
    assert take("w1") is None
    queue = get_run(principal=principal, run_id=second)["queue"]
    assert queue["reason"] == f"its session {session_id} is used by the run {first}"
    cancel_run(principal=principal, run_id=first)
    assert must_take("w1").run.id == second


def test_a_run_that_waits_for_its_session_does_not_block_other_runs(
    submit_in: SubmitIn, session_id: str, submit: Callable[..., str]
) -> None:
    submit_in(session_id)
    must_take("w1")
    submit_in(session_id)
    other = submit()
    assert must_take("w1").run.id == other


def test_one_of_many_concurrent_claims_gets_the_session(
    submit_in: SubmitIn, session_id: str
) -> None:
    for _ in range(4):
        submit_in(session_id)
    workers = [register(f"w{number}") for number in range(4)]
    claimed = [lease for lease in at_once([partial(take, worker) for worker in workers]) if lease]
    assert len(claimed) == 1
    assert BrowserSession.objects.get().worker_id == claimed[0].worker_id
    assert Run.objects.filter(status="running").count() == 1


def test_the_database_refuses_two_runs_in_one_session(submit_in: SubmitIn, session_id: str) -> None:
    for _ in range(2):
        submit_in(session_id)
    # SQLite names the column instead of the constraint.
    refusal = r"run_session_is_exclusive|UNIQUE constraint failed: runs_run\.session_id$"
    with pytest.raises(IntegrityError, match=refusal), transaction.atomic():
        Run.objects.update(status="running")


def test_a_run_goes_to_the_worker_that_holds_its_session(
    submit_in: SubmitIn, session_id: str, sent_wakeups: list[tuple[str, str]]
) -> None:
    BrowserSession.objects.update(worker_id=register("w1"))
    run_id = submit_in(session_id)
    assert sent_wakeups == [("runs.w1", run_id)]
    assert take(register("w2")) is None
    assert take("w1") is not None


def test_a_session_of_a_lost_worker_can_move_to_any_worker(
    submit_in: SubmitIn, session_id: str, sent_wakeups: list[tuple[str, str]]
) -> None:
    run_id = submit_in(session_id)
    must_take("w1")
    sent_wakeups.clear()
    end_leases_of_worker("w1", beat=0, reason="gone")
    assert BrowserSession.objects.get().worker_id is None
    assert sent_wakeups == [("runs", run_id)]
    assert must_take("w2").run.id == run_id
    assert BrowserSession.objects.get().worker_id == "w2"


def test_a_session_in_use_is_not_released(submit_in: SubmitIn, session_id: str) -> None:
    submit_in(session_id)
    must_take("w1")
    assert release_session(session_id, "w1") is False
    Run.objects.update(status="failed", error={}, ended_at=datetime.now(UTC), lease_owner=None)
    assert release_session(session_id, "w2") is False
    assert release_session(session_id, "w1") is True


@pytest.mark.parametrize("reason", ["unknown", "closed", "another's", "other workspace"])
def test_only_an_open_session_of_the_caller_is_found(
    submit_in: SubmitIn, session_id: str, principal: Principal, outsider: Principal, reason: str
) -> None:
    caller = principal
    if reason == "closed":
        sessions.close_session(principal=principal, session_id=session_id)
    elif reason == "another's":
        caller = replace(principal, id="token:tok_other")
    elif reason == "other workspace":
        caller = outsider
    requested = "sess_unknown" if reason == "unknown" else session_id
    with pytest.raises(SessionNotFound, match="There is no open session"):
        submit_in(requested, caller=caller)
    calls: list[Callable[..., Any]] = [
        sessions.get_session,
        sessions.close_session,
        sessions.clone_session,
        partial(sessions.rename_session, name="renamed"),
    ]
    for call in calls:
        with pytest.raises(NoSuchSession, match="There is no open session"):
            call(principal=caller, session_id=requested)
    assert sessions.list_sessions(principal=caller)["total"] == (1 if reason == "unknown" else 0)
    assert not Run.objects.exists()


def test_a_remote_caller_cannot_use_the_session_of_a_local_caller(
    submit_in: SubmitIn, session_id: str, remote: Principal
) -> None:
    with pytest.raises(TrustNotAllowed):
        submit_in(session_id, caller=remote)


def test_an_operator_can_close_any_session(session_id: str, principal: Principal) -> None:
    operator = admin_principal(
        "boss", tenant_id=principal.tenant_id, workspace_id=principal.workspace_id
    )
    assert sessions.close_session(principal=operator, session_id=session_id)["success"]
    entry = AuditEntry.objects.get(action="session.closed")
    assert (entry.actor, entry.resource_id) == ("admin:boss", session_id)


def test_an_operator_of_another_workspace_finds_no_session(
    session_id: str, outsider: Principal
) -> None:
    operator = admin_principal(
        "boss", tenant_id=outsider.tenant_id, workspace_id=outsider.workspace_id
    )
    with pytest.raises(NoSuchSession):
        sessions.close_session(principal=operator, session_id=session_id)


@pytest.mark.parametrize(
    ("columns", "constraint"),
    [
        pytest.param({"trust": "public"}, "session_trust_level", id="unknown trust level"),
        pytest.param(
            {"closed_at": datetime.now(UTC), "sealed_state": b"x"},
            "session_closed_keeps_nothing",
            id="closed with its state",
        ),
    ],
)
def test_the_database_refuses_a_session(
    session_id: str, columns: dict[str, Any], constraint: str
) -> None:
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        BrowserSession.objects.filter(id=session_id).update(**columns)


def test_a_session_in_use_is_not_closed(
    submit_in: SubmitIn, session_id: str, principal: Principal
) -> None:
    run_id = submit_in(session_id)
    must_take("w1")
    with pytest.raises(Conflict) as refused:
        sessions.close_session(principal=principal, session_id=session_id)
    assert refused.value.details == {"runId": run_id}
    assert BrowserSession.objects.get().closed_at is None


def test_closing_deletes_the_state_and_fails_the_waiting_runs(
    submit_in: SubmitIn, session_id: str, principal: Principal, execute_run: Callable[[str], Run]
) -> None:
    BrowserSession.objects.update(worker_id="w1")
    save_state(session_id, worker_id="w1", storage=STORAGE, urls=[])
    run_id = submit_in(session_id)
    sessions.close_session(principal=principal, session_id=session_id)
    row = BrowserSession.objects.get()
    assert (row.sealed_state, row.cookies, row.logged_in_until) == (None, 0, None)
    run = execute_run(run_id)
    assert (run.status, error_of(run)["errorCode"]) == ("failed", "SESSION_NOT_FOUND")
    assert run.steps.get().status == "failed"


def test_a_state_is_encrypted_and_saved_by_its_worker_only(session_id: str) -> None:
    BrowserSession.objects.update(worker_id="w1")
    assert save_state(session_id, worker_id="w2", storage=STORAGE, urls=[]) is False
    assert save_state(session_id, worker_id="w1", storage=STORAGE, urls=["http://a/"]) is True
    row = BrowserSession.objects.get()
    assert b"c00kie" not in bytes(row.sealed_state or b"")
    state = read_state(row)
    assert state is not None
    assert (state.storage, state.urls) == (STORAGE, ["http://a/"])


def test_a_state_that_cannot_be_decrypted_fails_the_run(
    submit_in: SubmitIn, session_id: str, execute_run: Callable[[str], Run]
) -> None:
    BrowserSession.objects.update(worker_id="w0")
    save_state(session_id, worker_id="w0", storage=STORAGE, urls=[])
    run_id = submit_in(session_id)
    with override_settings(CONTINUITY_SECRET_KEYS=["x" * 40]):
        run = execute_run(run_id)
    assert (run.status, error_of(run)["errorCode"]) == ("failed", "SESSION_NOT_FOUND")


def test_a_clone_has_the_same_state_and_its_own_lifetime(
    session_id: str, principal: Principal
) -> None:
    BrowserSession.objects.update(worker_id="w1")
    save_state(session_id, worker_id="w1", storage=STORAGE, urls=[])
    clone = sessions.clone_session(principal=principal, session_id=session_id)
    assert (clone["name"], clone["cookies"], clone["live"]) == ("copy of shop", 1, False)
    sessions.close_session(principal=principal, session_id=session_id)
    row = BrowserSession.objects.get(id=clone["sessionId"])
    assert read_state(row) is not None
    entry = AuditEntry.objects.get(resource_id=row.id)
    assert entry.metadata == {"name": "copy of shop", "clonedFrom": session_id}


def test_only_sessions_unused_for_long_expire(submit_in: SubmitIn, principal: Principal) -> None:
    session_ids = [sessions.create_session(principal=principal)["sessionId"] for _ in range(3)]
    submit_in(session_ids[1])
    long_ago = datetime.now(UTC) - timedelta(days=8)
    BrowserSession.objects.filter(id__in=session_ids[:2]).update(used_at=long_ago)
    assert sessions.expire_sessions() == 1
    assert sessions.expire_sessions() == 0
    assert set(
        BrowserSession.objects.filter(closed_at__isnull=False).values_list("id", flat=True)
    ) == {session_ids[0]}
    assert AuditEntry.objects.get(action="session.expired").resource_id == session_ids[0]


def test_closed_sessions_are_deleted_after_their_retention(
    session_id: str, principal: Principal
) -> None:
    sessions.close_session(principal=principal, session_id=session_id)
    assert sessions.delete_closed_sessions() == 0
    BrowserSession.objects.update(closed_at=datetime.now(UTC) - timedelta(days=31))
    assert sessions.delete_closed_sessions() == 1


@pytest.mark.parametrize(
    ("cookies", "expected"),
    [
        ([], None),
        ([("sessionid", -1, True)], None),
        ([("sessionid", 2000.0, False), ("theme", 1000.0, False)], 2000),
        ([("sessionid", 3000.0, True), ("auth_token", 2000.0, False)], 2000),
        ([("csrftoken", 1000.0, True), ("sid", 2000.0, False)], 2000),
        ([("x", 2000.0, True)], 2000),
        ([("sid", 1e18, False)], None),
    ],
)
def test_logged_in_until_is_the_earliest_expiry_of_a_login_cookie(
    cookies: list[tuple[str, float, bool]], expected: int | None
) -> None:
    stored = [
        {"name": name, "expires": ends, "httpOnly": http_only} for name, ends, http_only in cookies
    ]
    expiry = logged_in_until(stored)
    assert (None if expiry is None else expiry.timestamp()) == expected


def test_a_run_whose_session_was_taken_since_it_was_chosen_waits(
    submit_in: SubmitIn, session_id: str
) -> None:
    first, second = submit_in(session_id), submit_in(session_id)
    chosen = fresh(second)
    assert must_take("w1").run.id == first
    assert not lease_run(chosen, worker_id=register("w2"))
    assert fresh(second).status == "queued"
    assert BrowserSession.objects.get().worker_id == "w1"
