"""Forms of targets: a project workspace and a runner."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminPasswordWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from decisions.admin.filters import workspace_label
from decisions.models import Tenant, Workspace
from runners.gateway.request import TIMEOUT_MAX_MS, TIMEOUT_MS
from runners.models import ExecutionTarget, TargetKind
from runners.targets.runner_config import ON_UNREACHABLE
from runners.targets.targets import TargetFields


class TargetForm(forms.Form):
    """The fields of every target."""

    name = forms.CharField(max_length=128, widget=UnfoldAdminTextInputWidget)
    workspace = forms.ChoiceField(choices=(), widget=UnfoldAdminSelectWidget, label=_("Workspace"))
    is_default = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        label=_("Default"),
        help_text=_("Used by calls that name no target."),
    )
    enabled = forms.BooleanField(
        required=False, initial=True, widget=UnfoldBooleanSwitchWidget, label=_("Enabled")
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    noun: str | Promise = _("target")

    def __init__(
        self, data: QueryDict | None = None, *, target: ExecutionTarget | None = None
    ) -> None:
        self.target = target
        super().__init__(data, initial={} if target is None else self.initial_values(target))
        self.fields["workspace"].choices = _workspace_choices()  # type: ignore[attr-defined]

    @staticmethod
    def initial_values(target: ExecutionTarget) -> dict[str, Any]:
        """Return the form's values for an existing target."""
        return {
            "name": target.name,
            "workspace": f"{target.tenant_id}|{target.workspace_id or ''}",
            "is_default": target.is_default,
            "enabled": target.enabled,
            "version": target.version,
        }

    def target_fields(self) -> TargetFields:
        """Return the fields of the target; the form must be valid."""
        data = self.cleaned_data
        tenant_id, _, workspace_id = data["workspace"].partition("|")
        return TargetFields(
            tenant_id=tenant_id,
            workspace_id=workspace_id or None,
            name=data["name"],
            is_default=data["is_default"],
            enabled=data["enabled"],
            **self.kind_fields(data),
        )

    def kind_fields(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the fields that only this kind of target has."""
        raise NotImplementedError


class ProjectWorkspaceForm(TargetForm):
    """The form of a project workspace."""

    root = forms.CharField(
        max_length=1000,
        widget=UnfoldAdminTextInputWidget,
        label=_("Folder"),
        help_text=_(
            "An absolute path on the machines of the server and its workers, below one of"
            " CONTINUITY_WORKSPACE_ROOTS."
        ),
    )
    field_order = ("name", "workspace", "root")
    noun = _("project workspace")

    @staticmethod
    def initial_values(target: ExecutionTarget) -> dict[str, Any]:
        """Return the form's values for an existing project workspace."""
        return {**TargetForm.initial_values(target), "root": target.config.get("root", "")}

    def kind_fields(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the folder."""
        return {"config": {"root": data["root"].strip()}}


class RunnerForm(TargetForm):
    """The form of a runner."""

    endpoint = forms.CharField(
        max_length=500,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text=_(
            "The URL for POST requests, for example https://runner.example.com/execute: a"
            " public address, or one that CONTINUITY_EGRESS_ALLOW allows."
        ),
    )
    auth_token = forms.CharField(
        max_length=4096,
        required=False,
        label=_("Token"),
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text=_("Sent to the runner with every call. Stored encrypted, never shown."),
    )
    no_token = forms.BooleanField(
        required=False, widget=UnfoldBooleanSwitchWidget, label=_("Call without a token")
    )
    timeout_ms = forms.IntegerField(
        min_value=1,
        max_value=TIMEOUT_MAX_MS,
        initial=TIMEOUT_MS,
        label=_("Timeout per call (ms)"),
        widget=UnfoldAdminTextInputWidget,
    )
    on_unreachable = forms.ChoiceField(
        choices=[(one, one) for one in ON_UNREACHABLE],
        widget=UnfoldAdminSelectWidget,
        label=_("If unreachable"),
    )
    field_order = ("name", "workspace", "endpoint", "auth_token", "no_token")
    noun = _("runner")

    def __init__(
        self, data: QueryDict | None = None, *, target: ExecutionTarget | None = None
    ) -> None:
        super().__init__(data, target=target)
        if target is not None and target.sealed_auth_token:
            self.fields["auth_token"].help_text += " Empty: unchanged."
        else:
            del self.fields["no_token"]  # without a stored token, an empty field means no token

    @staticmethod
    def initial_values(target: ExecutionTarget) -> dict[str, Any]:
        """Return the form's values for an existing runner, without its token."""
        config = target.config
        return {
            **TargetForm.initial_values(target),
            "endpoint": target.endpoint or "",
            "timeout_ms": min(config.get("timeoutMs", TIMEOUT_MS), TIMEOUT_MAX_MS),
            "on_unreachable": config.get("onUnreachable", ON_UNREACHABLE[0]),
        }

    def kind_fields(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return endpoint, token and config; other keys of the stored config are unchanged."""
        config = {} if self.target is None else self.target.config
        auth_token = "" if data.get("no_token") else data["auth_token"] or None
        return {
            "kind": TargetKind.DOCKER_RUNNER,
            "auth_token": auth_token,
            "endpoint": data["endpoint"].strip() or None,
            "config": {
                **config,
                "timeoutMs": data["timeout_ms"],
                "onUnreachable": data["on_unreachable"],
            },
        }


FORMS: dict[str, type[TargetForm]] = {
    TargetKind.WORKSPACE: ProjectWorkspaceForm,
    TargetKind.DOCKER_RUNNER: RunnerForm,
}


def _workspace_choices() -> list[tuple[str, str]]:
    """Return the workspaces, and each tenant for all of its workspaces."""
    workspaces = Workspace.objects.select_related("tenant").order_by("tenant__name", "name")[:500]
    tenants = Tenant.objects.order_by("name")[:500]
    return [
        *((f"{row.tenant_id}|{row.id}", workspace_label(row)) for row in workspaces),
        *((f"{row.id}|", _("every workspace of %(name)s") % {"name": row.name}) for row in tenants),
    ]
