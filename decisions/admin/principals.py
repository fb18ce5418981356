"""Tenants, workspaces and users in the admin site: to read."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from decisions.admin.continuity import kept_of, state_table
from decisions.admin.filters import workspace_label
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.labels import code, link_to, moment
from decisions.models import Tenant, User, Workspace


@admin.register(Tenant)
class TenantAdmin(ReadOnlyAdmin):
    """Organisations."""

    list_display = ("name", "shown_id", "made")
    ordering = ("name",)
    search_fields = ("name",)
    fields = ("name", "shown_id", "made")
    readonly_fields = fields

    @admin.display(description="Id")
    def shown_id(self, tenant: Tenant) -> SafeString:
        """Return the id."""
        return code(tenant.id)

    @admin.display(description="Made")
    def made(self, tenant: Tenant) -> SafeString:
        """Return when it was made."""
        return moment(tenant.created_at)


@admin.register(Workspace)
class WorkspaceAdmin(ReadOnlyAdmin):
    """What queries are scoped to."""

    list_display = ("name", "organisation", "shown_id", "made")
    list_select_related = ("tenant",)
    ordering = ("tenant__name", "name", "id")
    search_fields = ("name",)
    fields = ("name", "organisation", "shown_id", "made")
    readonly_fields = fields

    @admin.display(description="Tenant")
    def organisation(self, place: Workspace) -> SafeString:
        """Return the tenant as a link."""
        return link_to("tenant", place.tenant_id, shown=place.tenant.name)

    @admin.display(description="Id")
    def shown_id(self, place: Workspace) -> SafeString:
        """Return the id."""
        return code(place.id)

    @admin.display(description="Made")
    def made(self, place: Workspace) -> SafeString:
        """Return when it was made."""
        return moment(place.created_at)


@admin.register(User)
class UserAdmin(ReadOnlyAdmin):
    """Whom agents work for; those who sign in here are operators."""

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

    @admin.display(description="Workspace")
    def place(self, user: User) -> SafeString:
        """Return the workspace as a link."""
        return link_to("workspace", user.workspace_id, shown=workspace_label(user.workspace))

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
