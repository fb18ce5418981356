"""One run per idempotency key: while the run lives, and until runTtl after its end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from decisions.foundation.errors import InvalidInput
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.models import Run, RunKey, RunStep
from runs.submission.submit import submit_run
from runs.submission.submitted_run import SubmittedRun
from tests.support.runs.concurrent_calls import at_once

HALF_AN_HOUR = timedelta(minutes=30)


def submit_with(principal: Principal, key: str = "k", **inputs: Any) -> SubmittedRun:
    return submit_run(
        principal=principal,
        template_id="test_stepwise",
        inputs={"do": ["ok"], **inputs},
        options={"mode": "async", "idempotencyKey": key},
    )


def end(run_id: str, ago: timedelta) -> None:
    ended_at = datetime.now(UTC) - ago
    Run.objects.filter(id=run_id).update(status="succeeded", ended_at=ended_at, ready=False)


def test_a_repeated_key_returns_the_same_run(principal: Principal) -> None:
    first, again = submit_with(principal), submit_with(principal)
    assert (first.deduplicated, again.deduplicated) == (False, True)
    assert again.run_id == first.run_id
    assert again.as_dict()["inputsMatch"] is True
    assert "inputsMatch" not in first.as_dict()
    assert Run.objects.count() == 1


def test_a_key_with_other_inputs_returns_the_first_run_and_reports_the_mismatch(
    principal: Principal,
) -> None:
    first = submit_with(principal)
    again = submit_with(principal, concurrency=2)
    assert (again.run_id, again.inputs_match) == (first.run_id, False)


def test_a_duplicate_returns_the_current_status(principal: Principal) -> None:
    first = submit_with(principal)
    end(first.run_id, timedelta(0))
    assert submit_with(principal).run.status == "succeeded"


def test_fifty_concurrent_submits_with_one_key_make_one_run(principal: Principal) -> None:
    submitted = at_once([partial(submit_with, principal)] * 50)
    assert len({one.run_id for one in submitted}) == 1
    assert sorted(one.deduplicated for one in submitted) == [False] + [True] * 49
    assert Run.objects.count() == RunStep.objects.count() == 1
    assert AuditEntry.objects.filter(action="run.submitted").count() == 1


def test_a_key_is_free_after_its_run_expired(principal: Principal) -> None:
    first = submit_with(principal)
    end(first.run_id, HALF_AN_HOUR - timedelta(seconds=5))
    assert submit_with(principal).run_id == first.run_id
    end(first.run_id, HALF_AN_HOUR)
    second = submit_with(principal, concurrency=2)
    assert (second.deduplicated, second.run_id == first.run_id) == (False, False)
    assert submit_with(principal, concurrency=2).inputs_match is True
    assert RunKey.objects.count() == 1


def test_a_key_is_valid_as_long_as_its_run_is_active(principal: Principal) -> None:
    first = submit_with(principal)
    long_ago = datetime.now(UTC) - timedelta(days=3)
    Run.objects.update(created_at=long_ago, updated_at=long_ago)
    assert submit_with(principal).run_id == first.run_id


def test_concurrent_submits_with_an_expired_key_make_one_run(principal: Principal) -> None:
    old = submit_with(principal)
    end(old.run_id, HALF_AN_HOUR)
    submitted = at_once([partial(submit_with, principal)] * 12)
    assert len({one.run_id for one in submitted}) == 1
    assert submitted[0].run_id != old.run_id
    assert Run.objects.count() == 2


def test_a_key_belongs_to_its_principal(principal: Principal) -> None:
    """Otherwise one caller could learn the runId of another."""
    workspace = principal.tenant_id, principal.workspace_id
    other = Principal("token:other", *workspace, principal.scopes, "local")
    assert submit_with(principal).run_id != submit_with(other).run_id


def test_a_refused_submit_uses_no_key(principal: Principal) -> None:
    bad: dict[str, Any] = {"do": [], "effect": "read"}
    with pytest.raises(InvalidInput):
        submit_with(principal, **bad)
    assert not RunKey.objects.exists()


def test_the_inputs_are_compared_by_a_keyed_digest(principal: Principal, settings: Any) -> None:
    submit_with(principal, "a")
    settings.CONTINUITY_SECRET_KEYS = ["another-secret-key-" + "x" * 32]
    submit_with(principal, "b")
    digests = set(RunKey.objects.values_list("inputs_digest", flat=True))
    assert [len(digest) for digest in digests] == [64, 64]
