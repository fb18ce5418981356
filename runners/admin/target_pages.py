"""The pages that make a folder a target and change one; what it was before is in the audit log."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from decisions.admin.filters import workspace_label
from decisions.admin.read_only import ReadOnlyAdmin, plain_id
from decisions.errors import Refused
from decisions.models import AuditEntry, Tenant, Workspace
from runners.models import ExecutionTarget, TargetKind
from runners.targets import TargetSays, change_target, make_target

VERSIONS = 50


class TargetForm(forms.Form):
    """What a folder is to tools."""

    name = forms.CharField(max_length=128, widget=UnfoldAdminTextInputWidget)
    place = forms.ChoiceField(choices=(), widget=UnfoldAdminSelectWidget, label="Whose")
    root = forms.CharField(
        max_length=1000, widget=UnfoldAdminTextInputWidget, label="Folder",
        help_text="An absolute path on the machines of the server and its workers, below one of"
        " CONTINUITY_WORKSPACE_ROOTS.",
    )  # fmt: skip
    is_default = forms.BooleanField(
        required=False, widget=UnfoldBooleanSwitchWidget, label="Default",
        help_text="Taken by calls that name no target.",
    )  # fmt: skip
    enabled = forms.BooleanField(
        required=False, initial=True, widget=UnfoldBooleanSwitchWidget, label="Enabled"
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["place"].choices = _places()  # type: ignore[attr-defined]

    def says(self) -> TargetSays:
        """Return what was filled in, once it is valid."""
        given = self.cleaned_data
        tenant_id, _, workspace_id = given["place"].partition("|")
        return TargetSays(
            tenant_id=tenant_id, workspace_id=workspace_id or None, name=given["name"],
            is_default=given["is_default"], enabled=given["enabled"],
            config={"root": given["root"].strip()},
        )  # fmt: skip


def _places() -> list[tuple[str, str]]:
    """Return whose a target can be."""
    spaces = Workspace.objects.select_related("tenant").order_by("tenant__name", "name")[:500]
    tenants = Tenant.objects.order_by("name")[:500]
    return [
        *((f"{row.tenant_id}|{row.id}", workspace_label(row)) for row in spaces),
        *((f"{row.id}|", f"every workspace of {row.name}") for row in tenants),
    ]


class TargetPages:
    """The views, each for whoever has the model's permission for it."""

    def __init__(self, model_admin: ReadOnlyAdmin) -> None:
        self._admin = model_admin

    def make_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form; on POST make the target."""
        if not request.user.has_perm("runners.add_executiontarget"):
            raise PermissionDenied
        return self._form(request, TargetForm(request.POST or None), None)

    def edit_view(self, request: HttpRequest, target_id: str) -> HttpResponse:
        """Show the form with what it is now; on POST have it be something else."""
        if not request.user.has_perm("runners.change_executiontarget"):
            raise PermissionDenied
        target = get_object_or_404(
            ExecutionTarget, id=plain_id(target_id), kind=TargetKind.WORKSPACE, is_local=False
        )
        now = {
            "name": target.name, "place": f"{target.tenant_id}|{target.workspace_id or ''}",
            "root": target.config.get("root", ""), "is_default": target.is_default,
            "enabled": target.enabled, "version": target.version,
        }  # fmt: skip
        return self._form(request, TargetForm(request.POST or None, initial=now), target)

    def _form(
        self, request: HttpRequest, form: TargetForm, target: ExecutionTarget | None
    ) -> HttpResponse:
        if request.method == "POST" and form.is_valid():
            try:
                done = self._write(request, form, target)
            except Refused as refusal:
                form.add_error(None, refusal.message)
            else:
                told = f"{done.name} is version {done.version} from the next call on."
                self._admin.message_user(request, told, messages.SUCCESS)
                return redirect(reverse("admin:runners_executiontarget_change", args=[done.id]))
        context = {
            **self._admin.admin_site.each_context(request), "model_admin": self._admin,
            "form": form, "title": "Change a folder" if target else "New folder", "target": target,
        }  # fmt: skip
        return TemplateResponse(request, "admin/runners/executiontarget/form.html", context)

    def _write(
        self, request: HttpRequest, form: TargetForm, target: ExecutionTarget | None
    ) -> ExecutionTarget:
        actor = f"admin:{request.user.get_username()}"
        if target is None:
            return make_target(form.says(), actor=actor)
        seen = form.cleaned_data["version"] or target.version
        return change_target(target.id, form.says(), actor=actor, if_version=seen)


def versions_of(target_id: str) -> list[dict[str, Any]]:
    """Return what a target was through time, the newest first, as the audit log has it."""
    rows = AuditEntry.objects.filter(
        resource_type="target", resource_id=target_id,
        action__in=["target.created", "target.changed"],
    ).order_by("-id")[:VERSIONS]  # fmt: skip
    return [{"entry": row, "said": row.metadata, "root": row.metadata["config"].get("root", "")}
            for row in rows]  # fmt: skip
