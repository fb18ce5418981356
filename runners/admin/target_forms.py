"""What a person fills in for a target: of a folder where it is, of a runner where it listens."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict
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
    """What every target is."""

    name = forms.CharField(max_length=128, widget=UnfoldAdminTextInputWidget)
    place = forms.ChoiceField(choices=(), widget=UnfoldAdminSelectWidget, label="Whose")
    is_default = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        label="Default",
        help_text="Taken by calls that name no target.",
    )
    enabled = forms.BooleanField(
        required=False, initial=True, widget=UnfoldBooleanSwitchWidget, label="Enabled"
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    noun = "target"

    def __init__(
        self, data: QueryDict | None = None, *, target: ExecutionTarget | None = None
    ) -> None:
        self.target = target
        super().__init__(data, initial={} if target is None else self.now(target))
        self.fields["place"].choices = _places()  # type: ignore[attr-defined]

    @staticmethod
    def now(target: ExecutionTarget) -> dict[str, Any]:
        """Return what a target is, as the form shows it."""
        return {
            "name": target.name,
            "place": f"{target.tenant_id}|{target.workspace_id or ''}",
            "is_default": target.is_default,
            "enabled": target.enabled,
            "version": target.version,
        }

    def says(self) -> TargetFields:
        """Return what was filled in, once it is valid."""
        given = self.cleaned_data
        tenant_id, _, workspace_id = given["place"].partition("|")
        return TargetFields(
            tenant_id=tenant_id,
            workspace_id=workspace_id or None,
            name=given["name"],
            is_default=given["is_default"],
            enabled=given["enabled"],
            **self.own(given),
        )

    def own(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return what only a target of this kind has."""
        raise NotImplementedError


class FolderForm(TargetForm):
    """What a folder is to tools."""

    root = forms.CharField(
        max_length=1000,
        widget=UnfoldAdminTextInputWidget,
        label="Folder",
        help_text="An absolute path on the machines of the server and its workers, below one of"
        " CONTINUITY_WORKSPACE_ROOTS.",
    )
    field_order = ("name", "place", "root")
    noun = "folder"

    @staticmethod
    def now(target: ExecutionTarget) -> dict[str, Any]:
        """Return what a folder is, as the form shows it."""
        return {**TargetForm.now(target), "root": target.config.get("root", "")}

    def own(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return where it is."""
        return {"config": {"root": given["root"].strip()}}


class RunnerForm(TargetForm):
    """What a runner elsewhere is to tools."""

    endpoint = forms.CharField(
        max_length=500,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="Where it takes its POST, for example https://runner.example.com/execute: a"
        " public address, or one that CONTINUITY_EGRESS_ALLOW opens.",
    )
    auth_token = forms.CharField(
        max_length=4096,
        required=False,
        label="Token",
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text="Sent to it with every call; kept encrypted and never shown.",
    )
    no_token = forms.BooleanField(
        required=False, widget=UnfoldBooleanSwitchWidget, label="Call it without a token"
    )
    timeout_ms = forms.IntegerField(
        min_value=1,
        max_value=TIMEOUT_MAX_MS,
        initial=TIMEOUT_MS,
        label="Milliseconds a call",
        widget=UnfoldAdminTextInputWidget,
    )
    on_unreachable = forms.ChoiceField(
        choices=[(one, one) for one in ON_UNREACHABLE],
        widget=UnfoldAdminSelectWidget,
        label="Where it cannot be reached",
    )
    field_order = ("name", "place", "endpoint", "auth_token", "no_token")
    noun = "runner"

    def __init__(
        self, data: QueryDict | None = None, *, target: ExecutionTarget | None = None
    ) -> None:
        super().__init__(data, target=target)
        if target is not None and target.sealed_auth_token:
            self.fields["auth_token"].help_text += " Empty: as it was."
        else:
            del self.fields["no_token"]  # it is called without one unless one is given

    @staticmethod
    def now(target: ExecutionTarget) -> dict[str, Any]:
        """Return what a runner is, as the form shows it: its token never."""
        config = target.config
        return {
            **TargetForm.now(target),
            "endpoint": target.endpoint or "",
            "timeout_ms": min(config.get("timeoutMs", TIMEOUT_MS), TIMEOUT_MAX_MS),
            "on_unreachable": config.get("onUnreachable", ON_UNREACHABLE[0]),
        }

    def own(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return where it listens; what else its config says stays."""
        config = {} if self.target is None else self.target.config
        auth_token = "" if given.get("no_token") else given["auth_token"] or None
        return {
            "kind": TargetKind.DOCKER_RUNNER,
            "auth_token": auth_token,
            "endpoint": given["endpoint"].strip() or None,
            "config": {
                **config,
                "timeoutMs": given["timeout_ms"],
                "onUnreachable": given["on_unreachable"],
            },
        }


FORMS: dict[str, type[TargetForm]] = {
    TargetKind.WORKSPACE: FolderForm,
    TargetKind.DOCKER_RUNNER: RunnerForm,
}


def _places() -> list[tuple[str, str]]:
    """Return whose a target can be."""
    spaces = Workspace.objects.select_related("tenant").order_by("tenant__name", "name")[:500]
    tenants = Tenant.objects.order_by("name")[:500]
    return [
        *((f"{row.tenant_id}|{row.id}", workspace_label(row)) for row in spaces),
        *((f"{row.id}|", f"every workspace of {row.name}") for row in tenants),
    ]
