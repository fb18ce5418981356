"""Who signs in at the admin site: Django's accounts and groups, every change to them audited."""

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
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from decisions.audit.record import AuditEvent, record, record_all
from decisions.identity.principals import ensure_workspace

admin.site.unregister(Account)
admin.site.unregister(Group)


def _deed(request: HttpRequest, verb: str, row: Model, **metadata: Any) -> AuditEvent:
    place = ensure_workspace()
    kind = "operator" if isinstance(row, Account) else "operator_group"
    return AuditEvent(
        f"{kind}.{verb}",
        f"admin:{request.user.get_username()}",
        kind,
        str(row),
        place.tenant_id,
        place.id,
        metadata,
    )


class AuditedAdmin(ModelAdmin):
    """Django calls these hooks inside the transaction of the change that they tell."""

    actions: Any = None  # deleting in bulk would have no transaction around it

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Audit a new row."""
        record(_deed(request, "created", obj))
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Audit a change by the names of its fields; a new password is told, not shown."""
        fields = [
            name
            for change in (message if isinstance(message, list) else [])
            for name in change.get("changed", {}).get("fields", [])
        ]
        record(_deed(request, "changed", obj, fields=fields))
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Audit what is about to go."""
        record_all([_deed(request, "deleted", row) for row in queryset])
        return super().log_deletions(request, queryset)


@admin.register(Account)
class OperatorAdmin(DjangoUserAdmin, AuditedAdmin):  # type: ignore[type-arg]
    """People who sign in here; a superuser may do everything, others what their permissions say."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "is_active", "is_staff", "is_superuser", "last_login")
    list_filter = ("is_active", "is_superuser")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        (
            "May",
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
        """Set somebody's password, the audit row in the same transaction."""
        return super().user_change_password(request, id, form_url)


@admin.register(Group)
class OperatorGroupAdmin(DjangoGroupAdmin, AuditedAdmin):
    """Permissions that several operators share."""


_change_own_password = admin.site.password_change


@transaction.atomic
def _audited_password_change(request: HttpRequest, extra_context: Any = None) -> HttpResponseBase:
    """Let an operator change the own password; Django has no hook for it, and redirects only when
    it is done.
    """
    answer = _change_own_password(request, extra_context)
    if request.method == "POST" and answer.status_code == 302:
        record(_deed(request, "changed", cast(Account, request.user), fields=["Password"]))
    return answer


admin.site.password_change = _audited_password_change  # type: ignore[method-assign, assignment]
