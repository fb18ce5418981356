"""The pages that make a target, change one and probe a runner; what it was before is in the audit
log.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse

from decisions.admin.read_only import ReadOnlyAdmin, plain_id
from decisions.authorization.policy import current_policy
from decisions.errors import Refused
from decisions.models import AuditEntry, PolicyRule
from decisions.presentation.html import TONES, pill
from runners.admin.target_forms import FORMS, FolderForm, RunnerForm, TargetForm
from runners.models import ExecutionTarget, TargetKind
from runners.remote_tools.catalogue import tools_of_runner
from runners.targets.published_tools import configured_tools
from runners.targets.runner_endpoint import probe_target
from runners.targets.targets import change_target, create_target_row

VERSIONS = 50
VERDICTS = {"allow": "allowed", "deny": "denied", "confirm": "asks a person"}


class TargetPages:
    """The views, each for whoever has the model's permission for it."""

    def __init__(self, model_admin: ReadOnlyAdmin) -> None:
        self._admin = model_admin

    def make_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form of a folder; on POST make the target."""
        return self._make(request, FolderForm)

    def make_runner_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form of a runner; on POST make the target."""
        return self._make(request, RunnerForm)

    def edit_view(self, request: HttpRequest, target_id: str) -> HttpResponse:
        """Show the form with what it is now; on POST have it be something else."""
        if not request.user.has_perm("runners.change_executiontarget"):
            raise PermissionDenied
        target = get_object_or_404(
            ExecutionTarget, id=plain_id(target_id), kind__in=list(FORMS), is_local=False
        )
        return self._form(request, FORMS[target.kind](request.POST or None, target=target))

    def probe_view(self, request: HttpRequest, target_id: str) -> HttpResponse:
        """Ask a runner for its health and go back to its page."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not request.user.has_perm("runners.change_executiontarget"):
            raise PermissionDenied
        runner = get_object_or_404(
            ExecutionTarget, id=plain_id(target_id), kind=TargetKind.DOCKER_RUNNER
        )
        found = probe_target(runner, actor=_actor(request))
        is_up = found.probe_error is None
        told = _what_it_said(found) if is_up else f"It does not answer. {found.probe_error}"
        self._admin.message_user(request, told, messages.SUCCESS if is_up else messages.ERROR)
        return redirect(_page_of(runner))

    def _make(self, request: HttpRequest, form: type[TargetForm]) -> HttpResponse:
        if not request.user.has_perm("runners.add_executiontarget"):
            raise PermissionDenied
        return self._form(request, form(request.POST or None))

    def _form(self, request: HttpRequest, form: TargetForm) -> HttpResponse:
        if request.method == "POST" and form.is_valid():
            try:
                done = _write(form, _actor(request))
            except Refused as refusal:
                form.add_error(None, refusal.message)
            else:
                told = f"{done.name} is version {done.version} from the next call on."
                self._admin.message_user(request, told, messages.SUCCESS)
                return redirect(_page_of(done))
        title = f"Change a {form.noun}" if form.target else f"New {form.noun}"
        context = {
            **self._admin.admin_site.each_context(request),
            "model_admin": self._admin,
            "form": form,
            "title": title,
            "target": form.target,
        }
        return TemplateResponse(request, "admin/runners/executiontarget/form.html", context)


def _write(form: TargetForm, actor: str) -> ExecutionTarget:
    if form.target is None:
        return create_target_row(form.says(), actor=actor)
    seen = form.cleaned_data["version"] or form.target.version
    return change_target(form.target.id, form.says(), actor=actor, if_version=seen)


def _what_it_said(probed: ExecutionTarget) -> str:
    if probed.catalogue_error is not None:
        return f"It answers. {probed.catalogue_error}"
    count = len(probed.catalogue)
    return f"It answers and offers {count} tool{'' if count == 1 else 's'}."


def _actor(request: HttpRequest) -> str:
    return f"admin:{request.user.get_username()}"


def _page_of(target: ExecutionTarget) -> str:
    return reverse("admin:runners_executiontarget_change", args=[target.id])


def shown_offers(target: ExecutionTarget) -> list[dict[str, Any]]:
    """Return the tools that a runner offers, each with where that is known from, and with what
    policy says now of calls from where the target is: no rule for a single agent is looked at.
    """
    policy = current_policy(
        principal_id="", tenant_id=target.tenant_id, workspace_id=target.workspace_id or ""
    )
    in_config = {offer["name"] for offer in configured_tools(target.config)}
    published = {offer["name"] for offer in target.catalogue}
    shown = []
    for offer in tools_of_runner(target, _named_in_rules(target)):
        name = offer["name"]
        known = "its config" if name in in_config else "itself" if name in published else "a rule"
        arguments = ", ".join(offer["inputSchema"].get("properties", {}))
        verdict = policy.evaluate(name, target.id).decision
        shown.append(
            {
                **offer,
                "arguments": arguments,
                "known_from": known,
                "verdict": verdict,
                "policy": pill(VERDICTS[verdict], TONES[verdict]),
                "allow_url": _form_of_a_rule(target, name),
            }
        )
    return shown


def _form_of_a_rule(target: ExecutionTarget, tool: str) -> str:
    whose = f"workspace|{target.workspace_id}" if target.workspace_id else None
    said = {
        "verdict": "allow",
        "tool": tool,
        "target_id": target.id,
        "scope": whose or f"tenant|{target.tenant_id}",
    }
    return f"{reverse('admin:decisions_policyrule_new')}?{urlencode(said)}"


def _named_in_rules(target: ExecutionTarget) -> list[str]:
    rules = PolicyRule.objects.filter(target_id=target.id, retired_at__isnull=True)
    named = rules.exclude(verdict="deny").exclude(tool="*")
    return sorted(set(named.values_list("tool", flat=True)))


def versions_of(target_id: str) -> list[dict[str, Any]]:
    """Return what a target was through time, the newest first, as the audit log has it."""
    rows = AuditEntry.objects.filter(
        resource_type="target",
        resource_id=target_id,
        action__in=["target.created", "target.changed"],
    ).order_by("-id")[:VERSIONS]
    return [{"entry": row, "said": row.metadata, "place": _place_in(row.metadata)} for row in rows]


def _place_in(said: dict[str, Any]) -> str:
    config = said["config"]
    return str(config.get("root") or said.get("endpoint") or config.get("endpoint") or "–")
