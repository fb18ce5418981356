"""Who sees what in the admin site, and that nobody writes there past the few deeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib import admin
from django.db.models import Model
from django.test import Client

from artifacts.models import Artifact
from decisions.audit import Deed, record
from decisions.models import AuditEntry, Token, User, Workspace
from decisions.principals import Principal, create_token
from runs.models import OutboxEntry, Run, Slot, Worker
from runs.services import submit_run

pytest_plugins = ["tests.support.admin_fixtures"]

OURS = [model for model in admin.site._registry if model._meta.app_label != "auth"]


def address(model: type[Model], *rest: str) -> str:
    """Return the address of a model's list, or of what lies below it."""
    return "/".join(["/admin", model._meta.app_label, str(model._meta.model_name), *rest, ""])


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.model_name)
def test_no_row_is_added_changed_or_deleted_by_a_superuser(
    boss: Client, model: type[Model], make_run: Callable[..., Run], principal: Principal
) -> None:
    create_token(name="t", user="u")
    make_run()
    row = model._default_manager.first() or model._default_manager.model(pk="x")
    for path in (
        address(model, "add"),
        address(model, str(row.pk), "change"),
        address(model, str(row.pk), "delete"),
    ):
        # A row that is not there is sent home; nothing is ever taken.
        assert boss.post(path, {"name": "x", "post": "yes"}).status_code in (302, 403, 404), path
    if model._default_manager.exists():
        assert boss.post(address(model, str(row.pk), "change"), {}).status_code == 403
        assert boss.post(address(model, str(row.pk), "delete"), {"post": "yes"}).status_code == 403


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.model_name)
def test_every_list_opens_and_survives_odd_questions(boss: Client, model: type[Model]) -> None:
    for query in ("", "?q=run_%27%22%3B--", "?p=3", "?time=hour", "?status=nonsense"):
        assert boss.get(address(model) + query).status_code in (200, 302)
    for query in ("?p=-1", "?p=99999999999999999999", "?nonsense__lookup=1", "?p=0"):
        assert boss.get(address(model) + query).status_code == 302


def test_strangers_are_sent_to_the_login(make_run: Callable[..., Run], boss: Client) -> None:
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
        answer = Client().get(path)
        assert answer.status_code == 302, path
        assert answer["Location"].startswith("/admin/login/"), path
    assert Client().post(address(Run, run.id, "cancel")).status_code == 302
    assert Run.objects.get().status == "queued"


def test_staff_without_permissions_see_nothing(
    staff: Callable[..., Client], make_run: Callable[..., Run], make_artifact: Callable[..., str]
) -> None:
    nobody, run = staff(), make_run(result_summary="private business")
    kept = make_artifact(b"x", run_id=run.id)
    for path in (
        address(Run),
        address(Run, run.id, "change"),
        address(Run, run.id, "live"),
        address(Run, run.id, "steps", "0"),
        address(Artifact, kept, "change"),
        address(Artifact, kept, "inline"),
        address(Artifact, kept, "download"),
        address(AuditEntry),
        address(Token),
        address(Token, "new"),
    ):
        assert nobody.get(path).status_code == 403, path
    assert b"private business" not in nobody.get("/admin/").content
    assert b"private business" not in nobody.get("/admin/live/").content


def test_the_run_page_shows_only_what_else_the_operator_may_see(
    staff: Callable[..., Client], make_story: Callable[..., Run], make_artifact: Callable[..., str]
) -> None:
    run = make_story(["succeeded"])
    make_artifact(b"x", run_id=run.id, name="kept-in-private.txt")
    record(Deed("run.started", "audited-actor", "run", run.id, run.tenant_id, run.workspace_id))
    seen = staff("runs.view_run").get(address(Run, run.id, "change")).content.decode()
    assert "kept-in-private" not in seen
    assert "audited-actor" not in seen
    assert "/cancel/" not in seen
    all_of_it = staff(
        "runs.view_run", "artifacts.view_artifact", "decisions.view_auditentry"
    ).get(address(Run, run.id, "change")).content.decode()  # fmt: skip
    assert "kept-in-private" in all_of_it
    assert "audited-actor" in all_of_it


def test_the_sidebar_offers_what_the_operator_may_see(staff: Callable[..., Client]) -> None:
    page = staff("runs.view_run").get("/admin/").content.decode()
    assert address(Run) in page
    assert address(Token) not in page


def test_rows_are_found_by_their_plain_ids_and_by_quoted_ones(
    boss: Client, make_run: Callable[..., Run]
) -> None:
    run = make_run()
    create_token(name="plain")
    for model, name in ((Run, run.id), (Token, Token.objects.get().id)):
        assert boss.get(address(model, name, "change")).status_code == 200
        assert boss.get(address(model, name.replace("_", "_5F"), "change")).status_code == 200
    listed = boss.get(address(Token)).content.decode()
    assert address(Token, Token.objects.get().id, "change") in listed


def test_what_is_gone_reads_as_a_page_for_people(boss: Client) -> None:
    answer = boss.get(address(Run, "run_gone", "change"))
    assert answer.status_code == 404
    assert "There is nothing here" in answer.content.decode()


def test_every_page_of_a_row_opens(
    boss: Client, principal: Principal, make_artifact: Callable[..., str]
) -> None:
    create_token(name="t", user="u")
    make_artifact(b"x")
    submit_run(
        principal=principal, template_id="test_stepwise", inputs={"do": ["ok"]},
        options={"mode": "async"},
    )  # fmt: skip
    rows = [Run, Artifact, AuditEntry, Token, User, Workspace, OutboxEntry, Slot]
    for model in rows:
        row = model._default_manager.first()
        assert row is not None
        assert boss.get(address(model, str(row.pk), "change")).status_code == 200, model
    assert not Worker.objects.exists()
