"""Admin pages of tenants, workspaces and users: operators view and create them.

Rows are never deleted, because audit rows refer to them.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth import get_permission_codename
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from decisions.admin.acting import actor_of
from decisions.admin.columns import column
from decisions.admin.filters import workspace_label
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.admin.user_memory import record_links, state_table
from decisions.audit.record import AuditEvent, record
from decisions.foundation.errors import InvalidInput
from decisions.foundation.presentation.html import code, link_to, moment
from decisions.foundation.presentation.refusals import refusal_text
from decisions.identity.principals import clean_user_id, ensure_workspace
from decisions.models import Tenant, User, Workspace


class PrincipalForm(forms.ModelForm):  # type: ignore[type-arg]
    """The form of a new tenant, workspace or user."""

    def clean(self) -> dict[str, Any]:
        """Refuse invisible characters in a name, and normalize the user id as the APIs do."""
        data = super().clean() or {}
        if not str(data.get("name", "")).isprintable():
            self.add_error("name", _("Use printable characters only."))
        if "user_id" in data:
            try:
                data["user_id"] = clean_user_id(data["user_id"])
            except InvalidInput as refused:
                self.add_error("user_id", refusal_text(refused.message))
        return data


class AddOnlyAdmin(ReadOnlyAdmin):
    """A model admin whose rows are added but never changed.

    Attributes:
        add_fields: The fields of the form of a new row.
    """

    form = PrincipalForm
    add_fields: tuple[str, ...] = ("name",)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may add a row."""
        codename = get_permission_codename("add", self.opts)
        return request.user.has_perm(f"{self.opts.app_label}.{codename}")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields of a new row or of an existing one."""
        return self.add_fields if obj is None else self.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the read-only fields: all of an existing row, none of a new one."""
        return () if obj is None else self.readonly_fields

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Audit the new row; Django calls this in the transaction that creates it."""
        actor, kind = actor_of(request), str(self.opts.model_name)
        record(
            AuditEvent(f"{kind}.created", actor, kind, *self.audited_ids(obj), {"name": str(obj)})
        )
        return super().log_addition(request, obj, message)

    def audited_ids(self, row: Any) -> tuple[str, str, str]:
        """Return the resource id, the tenant id and the workspace id of the row's audit row."""
        raise NotImplementedError


@admin.register(Tenant)
class TenantAdmin(AddOnlyAdmin):
    """Tenants."""

    list_title = _("Tenants")
    list_display = ("name", "display_id", "display_created_at")
    ordering = ("name",)
    search_fields = ("name",)
    fields = ("name", "display_id", "display_created_at")
    readonly_fields = fields

    def audited_ids(self, row: Tenant) -> tuple[str, str, str]:
        """Return the tenant's id and the local workspace; a new tenant has no workspace yet."""
        workspace = ensure_workspace()
        return row.id, workspace.tenant_id, workspace.id

    display_id = column(_("Id"), lambda tenant: code(tenant.id))
    display_created_at = column(_("Created"), lambda tenant: moment(tenant.created_at))


@admin.register(Workspace)
class WorkspaceAdmin(AddOnlyAdmin):
    """Workspaces of the tenants."""

    list_title = _("Workspaces")
    add_fields = ("tenant", "name")
    list_display = ("name", "display_tenant", "display_id", "display_created_at")
    list_select_related = ("tenant",)
    ordering = ("tenant__name", "name", "id")
    search_fields = ("name",)
    fields = ("name", "display_tenant", "display_id", "display_created_at")
    readonly_fields = fields

    def audited_ids(self, row: Workspace) -> tuple[str, str, str]:
        """Return the workspace's id, its tenant's id and its id again."""
        return row.id, row.tenant_id, row.id

    display_tenant = column(
        _("Tenant"),
        lambda workspace: link_to("tenant", workspace.tenant_id, label=workspace.tenant.name),
    )
    display_id = column(_("Id"), lambda workspace: code(workspace.id))
    display_created_at = column(_("Created"), lambda workspace: moment(workspace.created_at))


@admin.register(User)
class UserAdmin(AddOnlyAdmin):
    """Users of the callers. People who sign in to the admin are operators."""

    list_title = _("Users")
    list_empty = _("Users for whom agents act. A call that names a user adds one.")
    add_fields = ("workspace", "user_id")
    list_display = ("user_id", "display_workspace", "display_created_at")
    ordering = ("-id",)
    search_fields = ("user_id",)
    search_help_text = _("A complete user id")
    fields = (
        "user_id",
        "display_workspace",
        "display_created_at",
        "display_state",
        "display_records",
    )
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """Return users with their workspaces and tenants."""
        users: QuerySet[User] = super().get_queryset(request).select_related("workspace__tenant")
        return users

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[User], search_term: str
    ) -> tuple[QuerySet[User], bool]:
        """Find users by their complete id."""
        term = search_term.strip()
        return (queryset.filter(user_id=term) if term else queryset), False

    def audited_ids(self, row: User) -> tuple[str, str, str]:
        """Return the user id and the ids of its tenant and workspace."""
        return row.user_id, row.workspace.tenant_id, row.workspace_id

    display_workspace = column(
        _("Workspace"),
        lambda user: link_to("workspace", user.workspace_id, label=workspace_label(user.workspace)),
    )
    display_created_at = column(_("Created"), lambda user: moment(user.created_at))
    display_state = column(_("State"), state_table)
    display_records = column(_("Records"), record_links)
