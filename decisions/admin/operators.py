"""Admin pages of operators: Django's users and groups, with every change in the audit log.

Operators who are no superusers change only operators and groups whose permissions they have
themselves, and grant only these. Otherwise the permission to change users would give all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, Permission
from django.contrib.auth.models import User as Account
from django.db import transaction
from django.db.models import ManyToManyField, Model, Q, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext_lazy as _
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from decisions.admin.acting import actor_of
from decisions.admin.read_only import TitledAdmin
from decisions.audit.record import AuditEvent, record, record_all
from decisions.foundation.presentation.words import word
from decisions.identity.principals import ensure_workspace

_VERBS = {"add": _("add"), "change": _("change"), "delete": _("delete"), "view": _("view")}
_FLAGS = frozenset({"is_active", "is_staff", "is_superuser"})
_GRANTS = frozenset({"groups", "permissions", "user_permissions"})

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


def _permissions_of(row: Model) -> QuerySet[Permission]:
    """Return what a group or an operator, active or not, was granted."""
    if isinstance(row, Group):
        return row.permissions.all()
    return Permission.objects.filter(Q(user=row) | Q(group__user=row)).distinct()


def _grantable_permissions(request: HttpRequest) -> QuerySet[Permission]:
    account = cast(Account, request.user)
    return Permission.objects.all() if account.is_superuser else _permissions_of(account)


def _grantable_groups(request: HttpRequest) -> QuerySet[Group]:
    lacking = Permission.objects.exclude(pk__in=_grantable_permissions(request).values("pk"))
    return Group.objects.exclude(permissions__in=lacking)


def _may_manage(request: HttpRequest, row: Model | None) -> bool:
    """Return whether the user has every permission of the operator or group."""
    if row is None or cast(Account, request.user).is_superuser:
        return True
    if isinstance(row, Account) and row.is_superuser:
        return False
    own = _grantable_permissions(request).values("pk")
    return not _permissions_of(row).exclude(pk__in=own).exists()


class AuditedAdmin(TitledAdmin):
    """Writes an audit row for each change; Django calls the hooks in the change's transaction."""

    actions: Any = None  # Django's bulk delete would run outside of a transaction

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may change the row, which may have no permission they lack."""
        return super().has_change_permission(request, obj) and _may_manage(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may delete the row, which may have no permission they lack."""
        return super().has_delete_permission(request, obj) and _may_manage(request, obj)

    def formfield_for_manytomany(
        self, db_field: ManyToManyField[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Return the field of groups or permissions with those that the user may grant."""
        if db_field.related_model is Group:
            kwargs["queryset"] = _grantable_groups(request)
        else:
            kwargs["queryset"] = _grantable_permissions(request).select_related("content_type")
        field = super().formfield_for_manytomany(db_field, request, **kwargs)
        if db_field.related_model is Permission:
            field.label_from_instance = _label_of_permission
        return field

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        """Return Django's message, and what the form granted and withdrew."""
        message = super().construct_change_message(request, form, formsets, add)
        return [*message, *_grants(form)]

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Audit the creation of a row."""
        record(_audit_event(request, "created", obj, **_grants_in(message)))
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Audit a change with the names of the changed fields and grants, without other values."""
        fields = [
            name
            for change in (message if isinstance(message, list) else [])
            for name in change.get("changed", {}).get("fields", [])
        ]
        record(_audit_event(request, "changed", obj, fields=fields, **_grants_in(message)))
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Audit the rows that are about to be deleted."""
        record_all([_audit_event(request, "deleted", row) for row in queryset])
        return super().log_deletions(request, queryset)


def _label_of_permission(permission: Permission) -> str:
    """Return a permission as Django names it, in the language of the page."""
    kind = permission.content_type
    verb, _separator, _model = permission.codename.partition("_")
    model = kind.model_class()
    name = word(str(model._meta.verbose_name)) if model else kind.model
    about = _VERBS.get(verb)
    return f"{kind.app_labeled_name.partition(' | ')[0]} | {name} | {about or permission.name}"


def _grants(form: ModelForm[Any]) -> Iterator[dict[str, list[str]]]:
    """Yield what a form grants and withdraws: flags, groups and permissions."""
    granted, withdrawn = list[str](), list[str]()
    for name in form.changed_data:
        before, after = form.initial.get(name), form.cleaned_data.get(name)
        if name in _FLAGS:
            (granted if after else withdrawn).append(name)
        elif name in _GRANTS:
            old, new = set(before or ()), set(after or ())
            granted += sorted(_grant_name(row) for row in new - old)
            withdrawn += sorted(_grant_name(row) for row in old - new)
    if granted:
        yield {"granted": granted}
    if withdrawn:
        yield {"withdrawn": withdrawn}


def _grant_name(row: Group | Permission) -> str:
    if isinstance(row, Group):
        return f"group:{row.name}"
    return f"{row.content_type.app_label}.{row.codename}"


def _grants_in(message: Any) -> dict[str, list[str]]:
    parts = message if isinstance(message, list) else []
    return {verb: part[verb] for part in parts for verb in part if verb in ("granted", "withdrawn")}


@admin.register(Account)
class OperatorAdmin(DjangoUserAdmin, AuditedAdmin):  # type: ignore[type-arg]
    """Operators: people who sign in to the admin with their permissions."""

    list_title = _("Operators")
    new_title = _("New operator")
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "is_active", "is_staff", "is_superuser", "last_login")
    list_filter = ("is_active", "is_superuser")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        (
            _("Permissions"),
            {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")},
        ),
        (_("Dates"), {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields that the user cannot change; superusers alone make superusers."""
        fields = super().get_readonly_fields(request, obj)
        return fields if cast(Account, request.user).is_superuser else (*fields, "is_superuser")

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

    list_title = _("Operator groups")
    new_title = _("New operator group")
    list_empty = _("A group gives its permissions to several operators.")


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
