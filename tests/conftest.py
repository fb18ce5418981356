"""Fixtures that several kinds of tests share.

tests/environment.py selects the database (SQLite or PostgreSQL).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings

from artifacts.models import Artifact
from artifacts.services import artifact_rows, store_blob
from decisions.audit import anonymous_events
from decisions.authorization.authorize import tool_call_request
from decisions.foundation.infra.ids import new_id
from decisions.identity.principals import Principal, create_token, ensure_workspace, local_principal
from runs.models import TERMINAL, Run, RunStatus, RunTerms
from runs.queue import wakeups
from runs.queue.slots import ensure_slots
from runs.search.terms import error_columns, terms_of
from runs.submission.submit import submit_run

# The fixtures of tests/support, for every test by name.
pytest_plugins = [
    "tests.support.admin.admin_fixtures",
    "tests.support.admin.live_fixtures",
    "tests.support.admin.visitor_fixtures",
    "tests.support.agent.agent_fixtures",
    "tests.support.agent.agent_runner_fixtures",
    "tests.support.agent.model_fixtures",
    "tests.support.browser.browser_fixtures",
    "tests.support.browser.egress_fixtures",
    "tests.support.browser.login_fixtures",
    "tests.support.browser.paired_browser_fixtures",
    "tests.support.browser.shared_browser",
    "tests.support.browser.template_fixtures",
    "tests.support.decisions.chat_fixtures",
    "tests.support.decisions.confirmation_fixtures",
    "tests.support.installation.installation_fixtures",
    "tests.support.extension.extension_fixtures",
    "tests.support.rest.metrics_fixtures",
    "tests.support.rest.rest_fixtures",
    "tests.support.rest.s3_fixtures",
    "tests.support.runners.protocol_fixtures",
    "tests.support.runners.runner_fixtures",
    "tests.support.runs.task_fixtures",
    "tests.support.runs.webhook_fixtures",
    "tests.support.runs.worker_fixtures",
    "tests.support.workspace.folder_fixtures",
    "tests.support.workspace.project_fixtures",
    "tests.support.workspace.workspace_fixtures",
]
# Every run uses the same examples, so that CI does not fail a change for a defect that an earlier
# change introduced. HYPOTHESIS_PROFILE=explore generates new examples. Large inputs are wanted
# because many rules limit sizes.
hypothesis.settings.register_profile(
    "same",
    derandomize=True,
    deadline=None,
    suppress_health_check=[
        hypothesis.HealthCheck.too_slow,
        hypothesis.HealthCheck.data_too_large,
        hypothesis.HealthCheck.function_scoped_fixture,  # the examples of a test may share it
    ],
)
hypothesis.settings.register_profile(
    "explore", hypothesis.settings.get_profile("same"), derandomize=False, max_examples=2000
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture(autouse=True)
def _forget_anonymous_events() -> Iterator[None]:
    """Give each test's first anonymous event a row, whatever earlier tests did in this minute, and
    let no event be counted until after its test, when no test has the database.
    """
    anonymous_events._events = anonymous_events.AnonymousEvents()
    yield
    anonymous_events._events = anonymous_events.AnonymousEvents()


@pytest.fixture
def principal(transactional_db: None) -> Principal:
    """Return the local principal; the test commits, so other processes see its rows."""
    ensure_slots()
    wakeups.mark_received()  # one that an earlier test left undelivered would hold others back
    return local_principal()


@pytest.fixture
def remote(principal: Principal) -> Principal:
    """Return the same principal with trust level remote."""
    return principal.with_trust("remote")


@pytest.fixture
def outsider(principal: Principal) -> Principal:
    """Return a principal of another workspace."""
    workspace = ensure_workspace("elsewhere")
    return Principal(
        "token:elsewhere", workspace.tenant_id, workspace.id, principal.scopes, "local"
    )


@pytest.fixture
def token(principal: Principal) -> str:
    """Return a bearer token of the local workspace with trust level local."""
    return create_token(name="tests", trust="local")


@pytest.fixture
def submit(principal: Principal) -> Callable[..., str]:
    """Submit a run of the test template and return its id: `submit("ok", "sleep:1",
    effect="once")`.
    """

    def make(*do: str, options: dict[str, Any] | None = None, **inputs: Any) -> str:
        return submit_run(
            principal=principal,
            template_id="test_stepwise",
            inputs={"do": list(do or ("ok",)), **inputs},
            options={"mode": "async", **(options or {})},
        ).run_id

    return make


@pytest.fixture
def make_run(principal: Principal) -> Callable[..., Run]:
    """Insert a run row in any state without the services: `make_run(status="failed", error={})`."""

    def make(**columns: Any) -> Run:
        now = datetime.now(UTC)
        status = RunStatus(columns.setdefault("status", RunStatus.QUEUED))
        if status in TERMINAL:
            columns.setdefault("ended_at", now)
            columns.setdefault("ready", False)
        if status in (RunStatus.FAILED, RunStatus.CANCELED):
            columns.setdefault(
                "error", {"errorCode": "EXECUTION_ERROR", "message": "made by a test"}
            )
        base: dict[str, Any] = {
            "id": new_id("run_"),
            "tenant_id": principal.tenant_id,
            "trust": "local",
            "workspace_id": principal.workspace_id,
            "principal_id": principal.id,
            "template_id": "test_stepwise",
            "template_version": "1.0.0",
            "mode": "async",
            "inputs": {"do": ["ok"]},
            "session_id": new_id("sess_"),
            "total_steps": 1,
            "timeout_ms": 600_000,
            "created_at": now,
            "updated_at": now,
            "subject": "made by a test",
            **error_columns(columns.get("error")),
        }
        run = Run.objects.create(**{**base, **columns})
        RunTerms.objects.create(run=run, terms=terms_of(run))
        return run

    return make


@pytest.fixture
def make_artifact(principal: Principal) -> Callable[..., str]:
    """Store bytes as an artifact and return its id."""

    def make(
        data: bytes,
        *,
        mime_type: str = "text/plain",
        name: str = "made.txt",
        kind: str = "file",
        run_id: str | None = None,
        step_index: int | None = None,
    ) -> str:
        blob = store_blob(data, name=name, mime_type=mime_type, kind=kind)
        rows = artifact_rows(
            [(blob, step_index)],
            owner=tool_call_request(principal, "test", {}),
            run_id=run_id or new_id("run_"),
        )
        Artifact.objects.bulk_create(rows)
        return blob.artifact_id

    return make


@pytest.fixture
def failpoint() -> Iterator[Callable[[str, str], Path]]:
    """Arm a named failpoint; the test fails if no process reaches it."""
    folder = Path(settings.CONTINUITY_HOME) / "failpoints"
    armed: list[Path] = []

    def arm(name: str, action: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(action)
        armed.append(folder / name)
        return folder / name

    yield arm
    for path in armed:
        reached = path.with_name(path.name + ".hit")
        path.unlink(missing_ok=True)
        assert reached.exists(), f"the failpoint {path.name} was never reached"
        reached.unlink()
