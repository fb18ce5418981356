"""Admin pages of operators: Django's users and groups, with every change in the audit log."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.contrib.auth.models import User as Account
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from decisions.admin.acting import actor_of
from decisions.admin.read_only import TitledAdmin
from decisions.audit.record import AuditEvent, record, record_all
from decisions.identity.principals import ensure_workspace

admin.site.unregister(Account)
admin.site.unregister(Group)


def _audit_event(request: HttpRequest, verb: str, row: Model, **metadata: Any) -> AuditEvent:
    workspace = ensure_workspace()
    kind = "operator" if isinstance(row, Account) else "operator_group"
    return AuditEvent(
        f"{kind}.{verb}",
        actor_of(request),
        kind,
        str(row),
        workspace.tenant_id,
        workspace.id,
        metadata,
    )


class AuditedAdmin(TitledAdmin):
    """Writes an audit row for each change; Django calls the hooks in the change's transaction."""

    actions: Any = None  # Django's bulk delete would run outside of a transaction

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Audit the creation of a row."""
        record(_audit_event(request, "created", obj))
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Audit a change with the names of the changed fields, without values."""
        fields = [
            name
            for change in (message if isinstance(message, list) else [])
            for name in change.get("changed", {}).get("fields", [])
        ]
        record(_audit_event(request, "changed", obj, fields=fields))
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Audit the rows that are about to be deleted."""
        record_all([_audit_event(request, "deleted", row) for row in queryset])
        return super().log_deletions(request, queryset)


@admin.register(Account)
class OperatorAdmin(DjangoUserAdmin, AuditedAdmin):  # type: ignore[type-arg]
    """Operators: people who sign in to the admin with their permissions."""

    list_title = "Operators"
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "is_active", "is_staff", "is_superuser", "last_login")
    list_filter = ("is_active", "is_superuser")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        (
            "Permissions",
            {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")},
        ),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")

    @transaction.atomic
    def user_change_password(
        self,
        request: HttpRequest,
        id: str,  # noqa: A002  (Django's name)
        form_url: str = "",
    ) -> HttpResponse:
        """Set an operator's password and write the audit row in one transaction."""
        return super().user_change_password(request, id, form_url)


@admin.register(Group)
class OperatorGroupAdmin(DjangoGroupAdmin, AuditedAdmin):
    """Groups of operators that share permissions."""

    list_title = "Operator groups"


_change_own_password = admin.site.password_change


@transaction.atomic
def _audited_password_change(request: HttpRequest, extra_context: Any = None) -> HttpResponseBase:
    """Change the operator's own password and audit it.

    Django has no hook for this view; it redirects only after the password was changed.
    """
    response = _change_own_password(request, extra_context)
    if request.method == "POST" and response.status_code == 302:
        record(_audit_event(request, "changed", cast(Account, request.user), fields=["Password"]))
    return response


admin.site.password_change = _audited_password_change  # type: ignore[method-assign, assignment]
