"""Admin views that create and change targets and probe runners."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from decisions.admin.acting import actor_of
from decisions.admin.read_only import ReadOnlyAdmin, plain_id
from decisions.authorization.policy import current_policy_of
from decisions.foundation.errors import Refused
from decisions.foundation.presentation.html import TONES, pill
from decisions.foundation.presentation.refusals import refusal_text
from decisions.models import AuditEntry, PolicyRule
from runners.admin.target_forms import FORMS, ProjectWorkspaceForm, RunnerForm, TargetForm
from runners.models import ExecutionTarget, TargetKind
from runners.remote_tools.catalogue import tools_of_runner
from runners.targets.published_tools import configured_tools
from runners.targets.runner_endpoint import probe_target
from runners.targets.targets import change_target, create_target_row

VERSIONS_SHOWN = 50
VERDICTS = {"allow": "allowed", "deny": "denied", "confirm": "needs a confirmation"}


class TargetPages:
    """The views; each needs the model's add or change permission."""

    def __init__(self, model_admin: ReadOnlyAdmin) -> None:
        self._admin = model_admin

    def create_workspace_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form of a project workspace; on POST create the target."""
        return self._create(request, ProjectWorkspaceForm)

    def create_runner_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form of a runner; on POST create the target."""
        return self._create(request, RunnerForm)

    def edit_view(self, request: HttpRequest, target_id: str) -> HttpResponse:
        """Show the form with the target's values; on POST change the target."""
        if not request.user.has_perm("runners.change_executiontarget"):
            raise PermissionDenied
        target = get_object_or_404(
            ExecutionTarget, id=plain_id(target_id), kind__in=list(FORMS), is_local=False
        )
        return self._form(request, FORMS[target.kind](request.POST or None, target=target))

    def probe_view(self, request: HttpRequest, target_id: str) -> HttpResponse:
        """Probe a runner and redirect to its page."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not request.user.has_perm("runners.change_executiontarget"):
            raise PermissionDenied
        runner = get_object_or_404(
            ExecutionTarget, id=plain_id(target_id), kind=TargetKind.DOCKER_RUNNER
        )
        probed = probe_target(runner, actor=actor_of(request))
        is_up = probed.probe_error is None
        text = (
            _probe_result(probed)
            if is_up
            else _("No answer. %(why)s") % {"why": probed.probe_error}
        )
        self._admin.message_user(request, text, messages.SUCCESS if is_up else messages.ERROR)
        return redirect(_page_url(runner))

    def _create(self, request: HttpRequest, form: type[TargetForm]) -> HttpResponse:
        if not request.user.has_perm("runners.add_executiontarget"):
            raise PermissionDenied
        return self._form(request, form(request.POST or None))

    def _form(self, request: HttpRequest, form: TargetForm) -> HttpResponse:
        if request.method == "POST" and form.is_valid():
            try:
                saved = _save(form, actor_of(request))
            except Refused as refusal:
                form.add_error(None, refusal_text(refusal.message))
            else:
                text = _("%(name)s is saved as version %(version)s. It applies from now on.") % {
                    "name": saved.name,
                    "version": saved.version,
                }
                self._admin.message_user(request, text, messages.SUCCESS)
                return redirect(_page_url(saved))
        title = (_("Change %(kind)s") if form.target else _("New %(kind)s")) % {"kind": form.noun}
        context = {
            **self._admin.admin_site.each_context(request),
            "model_admin": self._admin,
            "form": form,
            "title": title,
            "target": form.target,
        }
        return TemplateResponse(request, "admin/runners/executiontarget/form.html", context)


def _save(form: TargetForm, actor: str) -> ExecutionTarget:
    if form.target is None:
        return create_target_row(form.target_fields(), actor=actor)
    version = form.cleaned_data["version"] or form.target.version
    return change_target(form.target.id, form.target_fields(), actor=actor, if_version=version)


def _probe_result(probed: ExecutionTarget) -> str:
    if probed.catalogue_error is not None:
        return _("The runner answers. %(why)s") % {"why": probed.catalogue_error}
    count = len(probed.catalogue)
    return ngettext(
        "The runner answers and offers %(count)s tool.",
        "The runner answers and offers %(count)s tools.",
        count,
    ) % {"count": count}


def _page_url(target: ExecutionTarget) -> str:
    return reverse("admin:runners_executiontarget_change", args=[target.id])


def offer_rows(target: ExecutionTarget) -> list[dict[str, Any]]:
    """Return the tools that a runner offers, each with its source and the current policy verdict.

    The verdict is that for calls of the target's workspace; rules for a single agent do not count.
    """
    policy = current_policy_of(frozenset({"", target.tenant_id, target.workspace_id or ""}))
    in_config = {offer["name"] for offer in configured_tools(target.config)}
    published = {offer["name"] for offer in target.catalogue}
    rows = []
    for offer in tools_of_runner(target, _tools_in_rules(target)):
        name = offer["name"]
        source = "config" if name in in_config else "runner" if name in published else "policy rule"
        arguments = ", ".join(offer["inputSchema"].get("properties", {}))
        verdict = policy.evaluate(name, target.id).decision
        rows.append(
            {
                **offer,
                "arguments": arguments,
                "source": source,
                "verdict": verdict,
                "policy": pill(VERDICTS[verdict], TONES[verdict]),
                "allow_url": _rule_form_url(target, name),
            }
        )
    return rows


def _rule_form_url(target: ExecutionTarget, tool: str) -> str:
    scope = f"workspace|{target.workspace_id}" if target.workspace_id else None
    query = {
        "tool": tool,
        "target_id": target.id,
        "scope": scope or f"tenant|{target.tenant_id}",
    }
    return f"{reverse('admin:decisions_policyrule_new')}?{urlencode(query)}"


def _tools_in_rules(target: ExecutionTarget) -> list[str]:
    rules = PolicyRule.objects.filter(target_id=target.id, retired_at__isnull=True)
    matching = rules.exclude(verdict="deny").exclude(tool="*")
    return sorted(set(matching.values_list("tool", flat=True)))


def target_versions(target_id: str) -> list[dict[str, Any]]:
    """Return the versions of a target from the audit log, newest first."""
    rows = AuditEntry.objects.filter(
        resource_type="target",
        resource_id=target_id,
        action__in=["target.created", "target.changed"],
    ).order_by("-id")[:VERSIONS_SHOWN]
    return [
        {"entry": row, "values": row.metadata, "location": _location(row.metadata)} for row in rows
    ]


def _location(values: dict[str, Any]) -> str:
    config = values["config"]
    return str(config.get("root") or values.get("endpoint") or config.get("endpoint") or "–")
