"""A new key goes first in CONTINUITY_SECRET_KEYS: what the old key signed stays valid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest
from django.conf import settings
from django.test import Client, override_settings

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.errors import ConfirmationRequired, NotAuthenticated
from decisions.identity.one_time_login import create_login_path
from decisions.identity.principals import Principal, authenticate, create_token
from decisions.models import Confirmation
from runs.models import Run
from runs.submission.submit import submit_run
from runs.submission.submitted_run import SubmittedRun
from runs.worker.worker import WorkerProcess
from tests.support.decisions.confirmations import answer_confirmation, confirm, reload_run

NEW = "n" * 40


@contextmanager
def new_key_first() -> Iterator[None]:
    with override_settings(CONTINUITY_SECRET_KEYS=[NEW, *settings.CONTINUITY_SECRET_KEYS]):
        yield


def submit(principal: Principal) -> SubmittedRun:
    return submit_run(
        principal=principal,
        template_id="test_stepwise",
        inputs={"do": ["ok"]},
        options={"mode": "async", "idempotencyKey": "k"},
    )


def test_a_token_is_valid_until_its_key_is_removed(principal: Principal) -> None:
    secret = create_token(name="ci")
    with new_key_first():
        caller = authenticate(secret)
        assert authenticate(create_token(name="new")).id != caller.id
    assert caller == authenticate(secret)
    with override_settings(CONTINUITY_SECRET_KEYS=[NEW]), pytest.raises(NotAuthenticated):
        authenticate(secret)


def test_a_waiting_run_resumes_with_an_approval_under_the_old_key(
    worker: WorkerProcess, submit_calls: Callable[..., Run], notes: Callable[[], str]
) -> None:
    run = submit_calls("note:a,risk:b", effect="once")
    worker.work()
    answer_confirmation(run)
    with new_key_first():
        worker.work()
    assert (reload_run(run).status, notes()) == ("succeeded", "ab")
    assert Confirmation.objects.count() == 1


def test_an_approval_under_the_old_key_is_used_once(principal: Principal) -> None:
    create_rule(RuleFields("confirm", tool="run_task_template", reason="test"), actor="t")
    with pytest.raises(ConfirmationRequired) as raised:
        submit(principal)
    decision_id = raised.value.details["decisionId"]
    with new_key_first():
        with pytest.raises(ConfirmationRequired) as again:
            submit(principal)
        assert again.value.details["decisionId"] == decision_id
        confirm(decision_id=decision_id, by="admin:ann", how="admin")
        first, second = submit(principal), submit(principal)
    assert (first.deduplicated, second.deduplicated) == (False, True)
    assert Run.objects.count() == 1


def test_a_repeated_submit_still_matches_the_first(principal: Principal) -> None:
    first = submit(principal)
    with new_key_first():
        again = submit(principal)
    assert (again.run_id, again.inputs_match) == (first.run_id, True)


def test_a_repeated_message_still_returns_its_first_answer(api: httpx.Client) -> None:
    message = {"user_id": "alice", "message": "What came of it?", "idempotency_key": "k"}
    first = api.post("/api/v1/chat", json=message)
    with new_key_first():
        again = api.post("/api/v1/chat", json=message)
        other = api.post("/api/v1/chat", json={**message, "message": "And now?"})
    assert (again.status_code, again.json()) == (200, first.json())
    assert other.status_code == 409


def test_a_login_link_stays_valid(principal: Principal) -> None:
    with override_settings(ONE_TIME_LOGIN=True):
        path = create_login_path()
    with new_key_first(), override_settings(ONE_TIME_LOGIN=True):
        assert Client().post(path).status_code == 302
