"""Rows of every kind that the admin shows, and the addresses of all of its pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.test import override_settings
from django.urls import reverse

from decisions import models as of_decisions
from decisions.audit.record import AuditEvent, record
from decisions.authorization.confirmation_links import confirmation_link
from decisions.authorization.confirmations import open_confirmation
from decisions.authorization.sealed_arguments import seal_arguments
from decisions.foundation.infra.ids import new_id
from decisions.identity.principals import Principal, create_token, local_principal
from decisions.memory.outcomes import open_outcome
from decisions.models import Confirmation, Decision
from runners.models import BrowserSession, ExecutionTarget, PluginClient
from runners.targets.targets import Caller
from runners.targets.workspaces import open_workspace
from runners.workspace.workspace import ProjectWorkspace
from runners.workspace.writing.snapshots import list_snapshots
from runners.workspace.writing.write_text import write_text
from runs.models import Run, RunStep, Webhook, WebhookDelivery, Worker
from runs.task_templates.registry import list_templates
from tests.support.decisions.continuity import FORECAST, create_decision

LONG = "a-name-that-is-much-longer-than-the-column-of-a-phone-" + "x" * 60
FORMS = (
    "admin:decisions_policyrule_new",
    "admin:decisions_policyrule_test",
    "admin:decisions_token_new",
    "admin:runs_webhook_new",
    "admin:runs_run_choose",
    "admin:runs_run_failures",
    "admin:statistics",
    "admin:runners_executiontarget_new",
    "admin:runners_pluginclient_new",
    "admin:auth_user_add",
    "admin:auth_group_add",
    "admin:password_change",
)
INBOX = "/admin/decisions/decision/?status=waiting"


class RowsOfEveryKind:
    """Creates rows of the kinds that the admin has pages of."""

    def __init__(self, principal: Principal, run: Run, folder: Path) -> None:
        self.principal, self.run, self.folder = principal, run, folder
        self.now = datetime.now(UTC)
        self.of_workspace = {
            "tenant_id": principal.tenant_id,
            "workspace_id": principal.workspace_id,
        }

    def create(self, number: int) -> None:
        """Create one row of each kind; `number` keeps names apart."""
        self._work(number)
        self._decisions(number)
        self._state(number)
        self._access(number)

    def _work(self, number: int) -> None:
        name = f"{LONG}{number}"
        BrowserSession.objects.create(id=new_id("sess_"), name=name, **self.of_workspace)
        target = ExecutionTarget.objects.create(
            kind="workspace", name=name, config={"root": str(self.folder)}, **self.of_workspace
        )
        with override_settings(WORKSPACE_ROOTS=(self.folder,)):
            for text in ("1\n2\n", "3\n2\n"):
                write_text(_workspace(self.principal, target), f"notes-{number}.txt", text)
        Worker.objects.create(
            id=new_id("wrk_"), process=f"host/{number}", host=LONG, started_at=self.now
        )
        webhook = Webhook.objects.create(
            id=new_id("wh_"),
            name=name,
            url=f"https://hooks.example/{LONG}",
            trust="remote",
            secret=b"s",
            created_by="local",
            created_at=self.now,
            **self.of_workspace,
        )
        WebhookDelivery.objects.create(
            id=new_id("msg_"),
            webhook=webhook,
            run=self.run,
            event="run.failed",
            next_try_at=self.now,
            created_at=self.now,
        )

    def _decisions(self, number: int) -> None:
        decision = Decision(
            principal_id="local",
            kind="tool",
            mode="confirm",
            subject_digest="d" * 64,
            tool="submit_form",
            target_id=f"target_{number}",
            run_id=self.run.id,
            step_index=1,
            arguments={"text": LONG},
            created_at=self.now,
            **self.of_workspace,
        )
        decision.sealed_arguments = seal_arguments(decision, {"text": LONG})
        decision.save()
        open_confirmation(decision)
        open_outcome(create_decision(self.principal), FORECAST)
        record(
            AuditEvent(
                "run.submitted",
                f"token:{LONG}",
                "run",
                self.run.id,
                metadata={"templateId": "test_stepwise", "reason": LONG},
                **self.of_workspace,
            )
        )

    def _state(self, number: int) -> None:
        owner = {**self.of_workspace, "user_id": f"user-{number}"}
        kept = of_decisions.UserObject.objects.create(
            object_type="success_path",
            name=f"{LONG}{number}",
            created_at=self.now,
            updated_at=self.now,
            **owner,
        )
        of_decisions.ObjectVersion.objects.create(
            object=kept,
            version=1,
            is_current=True,
            payload={"intent": LONG},
            confidence="high",
            validity="long",
            written_by="local",
            call_digest="0" * 64,
            created_at=self.now,
        )
        of_decisions.Evidence.objects.create(
            axis="time",
            source="chat",
            delta=0.1,
            confidence=0.5,
            value_before=0,
            value_after=0.1,
            note=LONG,
            created_at=self.now,
            **owner,
        )

    def _access(self, number: int) -> None:
        of_decisions.PolicyRule.objects.create(
            verdict="confirm",
            scope="everywhere",
            tool=f"tool_{number}",
            reason=LONG,
            created_by="admin:boss",
            created_at=self.now,
        )
        create_token(name=f"{LONG}{number}", lifetime=timedelta(days=3))
        PluginClient.objects.create(
            principal_id=self.principal.id,
            principal={},
            name=f"{LONG}{number}",
            extension_id="e" * 32,
            extension_name="Continuity",
            extension_version="1.0.0",
            user_agent=LONG,
            secret_digest="0" * 64,
            **self.of_workspace,
        )
        tenant = of_decisions.Tenant.objects.create(name=f"tenant-{number}")
        workspace = of_decisions.Workspace.objects.create(tenant=tenant, name=f"{LONG}{number}")
        of_decisions.User.objects.create(workspace=workspace, user_id=f"{LONG}{number}")
        User.objects.create_user(f"operator-{number}", is_staff=True)
        Group.objects.create(name=f"group-{number}")


def rows_of_every_kind(
    make_run_with_steps: Callable[..., Run],
    make_artifact: Callable[..., str],
    make_task: Callable[..., str],
    folder: Path,
    *,
    count: int = 1,
) -> None:
    """Create `count` rows of each kind, with the fixtures of these names."""
    first = User.objects.count()
    principal = local_principal()
    for number in range(first, first + count):
        run = make_run_with_steps(["succeeded", "failed"], status="failed", result_summary=LONG)
        make_artifact(b"text", name=f"{LONG}.txt", run_id=run.id)
        make_task(f"Find {LONG}")
        RowsOfEveryKind(principal, run, folder).create(number)


def lists() -> list[str]:
    """Return the addresses of all lists."""
    admin.autodiscover()
    return [INBOX, *(f"/admin/{_path(model)}/" for model in admin.site._registry)]


def pages() -> list[str]:
    """Return the addresses of all pages: the dashboard, lists, forms, and a page of each kind."""
    forms = [reverse(name) for name in FORMS]
    return ["/admin/", *lists(), *forms, *_row_pages()]


def further_pages() -> Iterator[str]:
    """Yield the addresses of pages that are reached from the page of a row: a form of a run, two
    runs compared, a snapshot beside its file, the review of a rule, a tested call.
    """
    yield reverse("admin:runs_run_new", args=["batch_extract_pages"])
    first, second = Run.objects.order_by("-pk")[:2]
    yield f"{reverse('admin:runs_run_compare')}?a={first.pk}&b={second.pk}"
    target = ExecutionTarget.objects.first()
    if target is not None:
        newest, *_ = list_snapshots(_workspace(local_principal(), target).state)
        yield reverse("admin:runners_executiontarget_snapshot", args=[target.pk, newest.id])
    rule = of_decisions.PolicyRule.objects.first()
    if rule is not None:
        yield reverse("admin:decisions_policyrule_retire", args=[rule.key])
        yield f"{reverse('admin:decisions_policyrule_test')}?tool={rule.tool}&caller=everywhere%7C"


def public_pages() -> list[str]:
    """Return the addresses of the pages that need no sign-in, except the English /api/docs."""
    links = []
    for status in ("waiting", "confirmed"):
        confirmation = Confirmation.objects.filter(status=status).last()
        if confirmation is not None:
            links.append(confirmation_link(confirmation))
    return ["/admin/login/", "/admin/once/used/", "/confirm/cnf_1/wrong", *links]


def pages_of_runs() -> list[str]:
    """Return the addresses of the form of each template, and of the pages about each run: the run,
    its steps, its comparison, its decisions, its failures by site.
    """
    forms = [
        reverse("admin:runs_run_new", args=[template.template_id])
        for template in list_templates()
        if template.is_listed and not template.template_id.startswith("test_")
    ]
    runs = [reverse("admin:runs_run_change", args=[run.pk]) for run in Run.objects.all()]
    compared = [f"{reverse('admin:runs_run_compare')}?a={run.pk}" for run in Run.objects.all()]
    steps = [
        reverse("admin:runs_run_step", args=[step.run_id, step.index])
        for step in RunStep.objects.all()
    ]
    decisions = [
        reverse("admin:decisions_decision_change", args=[one.pk])
        for one in of_decisions.Decision.objects.all()
    ]
    sites = f"{reverse('admin:runs_run_failures')}?by=site"
    return [*forms, *runs, *compared, *steps, *decisions, sites]


def _row_pages() -> Iterator[str]:
    for model in admin.site._registry:
        row: Any = model._default_manager.order_by("-pk").first()
        if row is not None:
            yield f"/admin/{_path(model)}/{row.pk}/change/"
    target = ExecutionTarget.objects.first()
    rule = of_decisions.PolicyRule.objects.first()
    if target is not None and rule is not None:
        yield reverse("admin:runners_executiontarget_edit", args=[target.pk])
        yield reverse("admin:runners_executiontarget_snapshots", args=[target.pk])
        yield reverse("admin:decisions_policyrule_edit", args=[rule.key])


def _workspace(principal: Principal, target: ExecutionTarget) -> ProjectWorkspace:
    return open_workspace(Caller.of(principal), target.id)


def _path(model: Any) -> str:
    return str(model._meta.label_lower.replace(".", "/"))
