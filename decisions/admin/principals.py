"""Tenants, workspaces and users in the admin site: to read and to make, each audited. None is ever
deleted: audit rows name them.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth import get_permission_codename
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from decisions.admin.continuity import kept_of, state_table
from decisions.admin.filters import workspace_label
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.audit.record import AuditEvent, record
from decisions.errors import InvalidInput
from decisions.identity.principals import clean_user_id, ensure_workspace
from decisions.models import Tenant, User, Workspace
from decisions.presentation.html import code, link_to, moment


class PrincipalForm(forms.ModelForm):  # type: ignore[type-arg]
    """A new one; its name may not hold what nobody sees, its user_id is one for every door."""

    def clean(self) -> dict[str, Any]:
        """Refuse such names."""
        given = super().clean() or {}
        if not str(given.get("name", "")).isprintable():
            self.add_error("name", "Only characters that can be seen.")
        if "user_id" in given:
            try:
                given["user_id"] = clean_user_id(given["user_id"])
            except InvalidInput as refused:
                self.add_error("user_id", refused.message)
        return given


class MakingAdmin(ReadOnlyAdmin):
    """A list to which rows are added and never changed.

    Attributes:
        asked: the fields of a new row.
    """

    form = PrincipalForm
    asked: tuple[str, ...] = ("name",)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether this operator may make one."""
        codename = get_permission_codename("add", self.opts)
        return request.user.has_perm(f"{self.opts.app_label}.{codename}")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return what a new row is asked for, or what is shown of one."""
        return self.asked if obj is None else self.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return what cannot be written: of a row that is there, everything."""
        return () if obj is None else self.readonly_fields

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Audit a new row; Django calls this inside the transaction that makes it."""
        actor, kind = f"admin:{request.user.get_username()}", str(self.opts.model_name)
        record(AuditEvent(f"{kind}.created", actor, kind, *self.told_of(obj), {"name": str(obj)}))
        return super().log_addition(request, obj, message)

    def told_of(self, row: Any) -> tuple[str, str, str]:
        """Return the row's id as audit rows name it, and whose log tells of it."""
        raise NotImplementedError


@admin.register(Tenant)
class TenantAdmin(MakingAdmin):
    """Organisations."""

    list_display = ("name", "shown_id", "made")
    ordering = ("name",)
    search_fields = ("name",)
    fields = ("name", "shown_id", "made")
    readonly_fields = fields

    def told_of(self, row: Tenant) -> tuple[str, str, str]:
        """Return its id; the log is that of this machine's own workspace, as it has none yet."""
        home = ensure_workspace()
        return row.id, home.tenant_id, home.id

    @admin.display(description="Id")
    def shown_id(self, tenant: Tenant) -> SafeString:
        """Return the id."""
        return code(tenant.id)

    @admin.display(description="Made")
    def made(self, tenant: Tenant) -> SafeString:
        """Return when it was made."""
        return moment(tenant.created_at)


@admin.register(Workspace)
class WorkspaceAdmin(MakingAdmin):
    """What queries are scoped to."""

    asked = ("tenant", "name")
    list_display = ("name", "organisation", "shown_id", "made")
    list_select_related = ("tenant",)
    ordering = ("tenant__name", "name", "id")
    search_fields = ("name",)
    fields = ("name", "organisation", "shown_id", "made")
    readonly_fields = fields

    def told_of(self, row: Workspace) -> tuple[str, str, str]:
        """Return its id and itself."""
        return row.id, row.tenant_id, row.id

    @admin.display(description="Tenant")
    def organisation(self, place: Workspace) -> SafeString:
        """Return the tenant as a link."""
        return link_to("tenant", place.tenant_id, label=place.tenant.name)

    @admin.display(description="Id")
    def shown_id(self, place: Workspace) -> SafeString:
        """Return the id."""
        return code(place.id)

    @admin.display(description="Made")
    def made(self, place: Workspace) -> SafeString:
        """Return when it was made."""
        return moment(place.created_at)


@admin.register(User)
class UserAdmin(MakingAdmin):
    """Whom agents work for; those who sign in here are operators."""

    asked = ("workspace", "user_id")
    list_display = ("user_id", "place", "made")
    ordering = ("-id",)
    search_fields = ("user_id",)
    search_help_text = "A whole user id"
    fields = ("user_id", "place", "made", "state", "kept")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """Return users with their places."""
        users: QuerySet[User] = super().get_queryset(request).select_related("workspace__tenant")
        return users

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[User], search_term: str
    ) -> tuple[QuerySet[User], bool]:
        """Find users by their whole id."""
        term = search_term.strip()
        return (queryset.filter(user_id=term) if term else queryset), False

    def told_of(self, row: User) -> tuple[str, str, str]:
        """Return the user_id and its workspace."""
        return row.user_id, row.workspace.tenant_id, row.workspace_id

    @admin.display(description="Workspace")
    def place(self, user: User) -> SafeString:
        """Return the workspace as a link."""
        return link_to("workspace", user.workspace_id, label=workspace_label(user.workspace))

    @admin.display(description="Made")
    def made(self, user: User) -> SafeString:
        """Return when it was first seen."""
        return moment(user.created_at)

    @admin.display(description="State")
    def state(self, user: User) -> SafeString:
        """Return what the user has to spend."""
        return state_table(user)

    @admin.display(description="Kept")
    def kept(self, user: User) -> SafeString:
        """Return links to objects, outcomes and evidence."""
        return kept_of(user)
