"""Who sees what in the admin site; only the few audited actions write there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.contrib import admin
from django.db.models import Model
from django.test import Client

from artifacts.models import Artifact
from decisions.audit.record import AuditEvent, record
from decisions.authorization.confirmations import open_confirmation
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.principals import Principal, create_token
from decisions.memory.objects import put_shell
from decisions.memory.state import AxisChange, apply_changes
from decisions.models import AuditEntry, Decision, Tenant, Token, User, Workspace
from runners.models import BrowserSession, ExecutionTarget
from runs.conversations.services import create_task
from runs.models import Run, Webhook, WebhookDelivery, Worker
from runs.webhooks.services import create_webhook
from tests.support.browser.paired_browser import pair
from tests.support.decisions.continuity import (
    SHELL,
    create_decision,
    create_decision_with_outcome,
    owner_of,
)

admin.autodiscover()
PROJECT_MODELS = [model for model in admin.site._registry if model._meta.app_label != "auth"]

CREATED_IN_ADMIN = (Tenant, Workspace, User)  # in forms of the admin; see test_admin_principals


def address(model: type[Model], *rest: str) -> str:
    """Return the address of a model's list, or of a page below it."""
    return "/".join(["/admin", model._meta.app_label, str(model._meta.model_name), *rest, ""])


@pytest.fixture
def a_row_each(
    principal: Principal, make_run: Callable[..., Run], make_artifact: Callable[..., str]
) -> None:
    """Create at least one row of every model of the project."""
    create_token(name="t", users=["u"])
    make_artifact(b"x", run_id=make_run().id)
    now, workspace = datetime.now(UTC), {"workspace_id": principal.workspace_id}
    Worker.objects.create(id="wrk_1", process="p", host="h", started_at=now)
    BrowserSession.objects.create(id="sess_1", tenant_id=principal.tenant_id, **workspace)
    ExecutionTarget.objects.create(
        tenant_id=principal.tenant_id,
        **workspace,
        kind="workspace",
        name="t",
        config={"root": "/gone"},
    )
    pair(principal)
    create_rule(RuleFields("deny", tool="x", reason="test"), actor="t")
    Decision.objects.create(
        tenant_id=principal.tenant_id,
        **workspace,
        principal_id="local",
        kind="tool",
        mode="confirm",
        subject_digest="d",
        tool="x",
        created_at=now,
    )
    apply_changes(owner_of(principal), [AxisChange("time", -0.5, 0.5, "chat")])
    put_shell(principal=principal, call={**SHELL, "user_id": "u"})
    create_decision_with_outcome(principal)
    create_task(principal=principal, title="a task")
    create_webhook(principal=principal, url="http://127.0.0.1:9/")
    WebhookDelivery.objects.create(
        id="msg_1",
        webhook=Webhook.objects.get(),
        run=Run.objects.get(),
        event="run.failed",
        next_try_at=now,
        created_at=now,
    )


@pytest.mark.usefixtures("a_row_each")
def test_no_row_is_added_changed_or_deleted_by_a_superuser(superuser_client: Client) -> None:
    for model in PROJECT_MODELS:
        row = model._default_manager.first()
        assert row is not None, model
        for action in ("change", "delete"):
            response = superuser_client.post(
                address(model, str(row.pk), action), {"name": "x", "post": "yes"}
            )
            assert response.status_code == 403, (model, action)
        if model not in CREATED_IN_ADMIN:
            assert superuser_client.post(address(model, "add"), {"name": "x"}).status_code == 403, (
                model
            )
        selection = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
        superuser_client.post(address(model), selection)
        assert model._default_manager.filter(pk=row.pk).exists(), model


@pytest.mark.slow
@pytest.mark.usefixtures("a_row_each")
def test_every_list_and_every_page_opens(superuser_client: Client) -> None:
    for model in PROJECT_MODELS:
        row = model._default_manager.first()
        assert row is not None, model
        assert superuser_client.get(address(model)).status_code == 200, model
        assert superuser_client.get(address(model, str(row.pk), "change")).status_code == 200, model


@pytest.mark.slow
@pytest.mark.usefixtures("a_row_each")
def test_every_list_handles_malformed_queries(superuser_client: Client) -> None:
    for model in PROJECT_MODELS:
        for query in ("?q=run_%27%22%3B--", "?q=%00", "?p=3", "?time=x", "?status=x"):
            assert superuser_client.get(address(model) + query).status_code in (200, 302), (
                model,
                query,
            )
        for query in ("?p=-1", "?p=0", "?p=99999999999999999999", "?nonsense__lookup=1"):
            assert superuser_client.get(address(model) + query).status_code == 302, (model, query)


def test_anonymous_users_are_redirected_to_the_login(
    make_run: Callable[..., Run], superuser_client: Client
) -> None:
    run = make_run()
    for path in (
        "/admin/",
        "/admin/live/",
        address(Run),
        address(Run, run.id, "change"),
        address(Run, run.id, "live"),
        address(Run, run.id, "steps", "0"),
        address(Token, "new"),
    ):
        response = Client().get(path)
        assert response.status_code == 302, path
        assert response["Location"].startswith("/admin/login/"), path
    assert Client().post(address(Run, run.id, "cancel")).status_code == 302
    assert Run.objects.get().status == "queued"


def test_staff_without_permissions_see_nothing(
    staff_client: Callable[..., Client],
    make_run: Callable[..., Run],
    make_artifact: Callable[..., str],
) -> None:
    client_without_permissions, run = staff_client(), make_run(result_summary="private business")
    artifact_id = make_artifact(b"x", run_id=run.id)
    for path in (
        address(Run),
        address(Run, run.id, "change"),
        address(Run, run.id, "live"),
        address(Run, run.id, "steps", "0"),
        address(Artifact, artifact_id, "change"),
        address(Artifact, artifact_id, "inline"),
        address(Artifact, artifact_id, "download"),
        address(AuditEntry),
        address(Token),
        address(Token, "new"),
    ):
        assert client_without_permissions.get(path).status_code == 403, path
    assert b"private business" not in client_without_permissions.get("/admin/").content
    assert b"cty-tile" not in client_without_permissions.get("/admin/").content
    assert client_without_permissions.get("/admin/live/").status_code == 403


def test_the_dashboard_shows_only_what_the_operator_may_see(
    staff_client: Callable[..., Client], make_run: Callable[..., Run], principal: Principal
) -> None:
    make_run()
    open_confirmation(create_decision(principal, mode="confirm"), delivery="out_of_band")
    all_of_it = ("confirmations to decide", address(Worker))
    page = staff_client("runs.view_run").get("/admin/live/").content.decode()
    assert 'class="cty-tile"' in page
    assert [text for text in all_of_it if text in page] == []
    viewer = staff_client("runs.view_run", "decisions.view_decision", "runs.view_worker")
    page = viewer.get("/admin/live/").content.decode()
    assert [text for text in all_of_it if text not in page] == []


def test_the_run_page_shows_only_other_data_that_the_operator_may_see(
    staff_client: Callable[..., Client],
    make_run_with_steps: Callable[..., Run],
    make_artifact: Callable[..., str],
) -> None:
    run = make_run_with_steps(["succeeded"])
    make_artifact(b"x", run_id=run.id, name="kept-in-private.txt")
    record(
        AuditEvent("run.started", "audited-actor", "run", run.id, run.tenant_id, run.workspace_id)
    )
    page = staff_client("runs.view_run").get(address(Run, run.id, "change")).content.decode()
    assert "kept-in-private" not in page
    assert "audited-actor" not in page
    assert "/cancel/" not in page
    full_page = (
        staff_client("runs.view_run", "artifacts.view_artifact", "decisions.view_auditentry")
        .get(address(Run, run.id, "change"))
        .content.decode()
    )
    assert "kept-in-private" in full_page
    assert "audited-actor" in full_page


def test_the_sidebar_lists_only_what_the_operator_may_see(
    staff_client: Callable[..., Client],
) -> None:
    page = staff_client("runs.view_run").get("/admin/").content.decode()
    assert address(Run) in page
    assert address(Token) not in page


def test_rows_are_found_by_their_plain_ids_and_by_quoted_ones(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    run = make_run()
    create_token(name="plain")
    for model, name in ((Run, run.id), (Token, Token.objects.get().id)):
        assert superuser_client.get(address(model, name, "change")).status_code == 200
        assert (
            superuser_client.get(address(model, name.replace("_", "_5F"), "change")).status_code
            == 200
        )
    listed = superuser_client.get(address(Token)).content.decode()
    assert address(Token, Token.objects.get().id, "change") in listed


def test_a_missing_row_shows_a_readable_page(superuser_client: Client) -> None:
    response = superuser_client.get(address(Run, "run_gone", "change"))
    assert response.status_code == 404
    assert "Page not found" in response.content.decode()
