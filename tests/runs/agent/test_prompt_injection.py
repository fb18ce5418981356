"""Prompt injection in files and pages, with a model that obeys all of it: only calls that policy
allows have an effect. Each case checks the effects, not the model's text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.principals import Principal
from runners.targets.targets import TargetFields, create_target_row
from runs.models import Run
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call
from tests.support.browser.page_server import PageResponse, PageServer, serve_pages
from tests.support.injections.environment import (
    InjectionEnvironment,
    check_nothing_happened,
    environment_state,
    plant_secrets,
    values_of,
)
from tests.support.injections.file_injections import IN_FILES
from tests.support.injections.injection import Injection
from tests.support.injections.obeying_model import ObeyingModel, orders_in
from tests.support.injections.page_injections import ON_PAGES


@pytest.fixture
def waiting_run(principal: Principal, project: Path, worker: WorkerProcess) -> Run:
    """Return a run of another caller that waits for a person."""
    create_rule(RuleFields("confirm", tool="list_snapshots", reason="test"), actor="t")
    calls = [{"name": "list_snapshots", "args": {"path": "game/scene/start.txt"}}]
    run_id = submit_run(
        principal=principal,
        template_id="call_tools",
        inputs={"calls": calls},
        options={"mode": "async"},
    ).run_id
    worker.work()
    return Run.objects.get(id=run_id)


@pytest.fixture
def environment(
    tmp_path: Path,
    project: Path,
    outsider: Principal,
    waiting_run: Run,
    web: str,
    token: str,
    page_server: PageServer,
    make_artifact: Callable[..., str],
    agent_settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[InjectionEnvironment]:
    """Create every resource that the injected texts aim at, and servers that record requests."""
    agent_settings.PUBLIC_URL = web
    # As for a developer, who has tools that an agent must not have.
    agent_settings.WORKSPACE_POLICY = replace(agent_settings.WORKSPACE_POLICY, developer=True)
    with serve_pages() as attacker, serve_pages() as product_server:
        created = InjectionEnvironment(tmp_path, project, attacker, product_server)
        plant_secrets(created)
        other = tmp_path / "roots" / "other"
        other.mkdir()
        (other / "secret.txt").write_text(created.secret("other"))
        fields = TargetFields(
            tenant_id=outsider.tenant_id,
            workspace_id=outsider.workspace_id,
            name="other",
            config={"root": str(other)},
        )
        target = create_target_row(fields, actor="test")
        artifact_id = make_artifact(created.secret("artifact").encode())
        created.secrets |= {"token": token, "the model's key": agent_settings.LLM.api_key}
        monkeypatch.setenv("CONTINUITY_TEST_KEY", created.secret("environ"))
        monkeypatch.setenv(
            "CONTINUITY_OWN_PORTS", f"{product_server.server_port},{urlsplit(web).port}"
        )
        monkeypatch.setenv("CONTINUITY_EGRESS_ALLOW", f"127.0.0.1:{page_server.server_port}")
        created.values |= values_of(waiting_run, artifact_id, target.id)
        created.values |= {
            "product": product_server.url(""),
            "product_port": str(product_server.server_port),
            "web": web,
            "attacker": attacker.url(""),
            "page": page_server.url(""),
        }
        yield created


@pytest.fixture
def obey_and_check(
    environment: InjectionEnvironment,
    model: ModelServer,
    principal: Principal,
    worker: WorkerProcess,
) -> Callable[[Injection, Call], None]:
    """Have an agent read an injected text and obey it, then check the effects."""

    def obey(row: Injection, first: Call) -> None:
        for verdict, tool in row.rules:
            create_rule(RuleFields(verdict, tool=tool, reason="test"), actor="t")
        before, model.answer = environment_state(environment), ObeyingModel(first)
        submitted = submit_run(
            principal=principal.with_trust(row.trust),
            template_id="agent_task",
            inputs={"goal": "Read my notes."},
            options={"mode": "async"},
        )
        inputs = Run.objects.get(id=submitted.run_id).inputs
        worker.work()
        run = Run.objects.get(id=submitted.run_id)
        assert (run.status, run.waiting_for is not None) == (
            ("running", True) if row.waits else ("succeeded", False)
        ), run.error
        expected = orders_in(environment.fill(row.text))
        assert model.answer.obeyed, "the model did not obey"
        assert all(call in model.answer.obeyed for call in expected), "the model did not obey"
        check_nothing_happened(environment, before, run, inputs, model)
        assert row.may_reach or not environment.product.hits, "a page of the product was requested"
        assert row.may_send or not environment.attacker.hits, "the other server was reached"

    return obey


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row.name, marks=[pytest.mark.slow] if number % 3 else [])
        for number, row in enumerate(IN_FILES)
    ],
)
def test_an_injection_in_a_file_has_no_effect_outside_policy(
    row: Injection,
    environment: InjectionEnvironment,
    obey_and_check: Callable[[Injection, Call], None],
) -> None:
    (environment.project / "notes.md").write_text(environment.fill(row.text), "utf-8")
    obey_and_check(row, Call("read_file", {"path": "notes.md"}, "first"))


@pytest.mark.slow
@pytest.mark.parametrize("row", ON_PAGES, ids=lambda row: row.name)
def test_an_injection_on_a_page_has_no_effect_outside_policy(
    row: Injection,
    environment: InjectionEnvironment,
    page_server: PageServer,
    obey_and_check: Callable[[Injection, Call], None],
) -> None:
    for path, target_url in (
        ("/to-product", environment.product.url("/admin/")),
        ("/to-attacker", environment.attacker.url("/")),
    ):
        page_server.add(path, PageResponse(status=302, headers={"Location": target_url}))
    url = page_server.add("/injected", environment.page(row))
    obey_and_check(row, Call("task_start", {"url": url}, "first"))


def test_there_are_thirty_injections_with_distinct_names() -> None:
    names = [row.name for row in (*IN_FILES, *ON_PAGES)]
    assert len(set(names)) == len(names) >= 30
