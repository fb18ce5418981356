"""The sidebar of the admin. Each item has the title of its list and needs a view permission."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise, SimpleLazyObject
from django.utils.translation import gettext_lazy as _

from decisions.admin.decisions import INBOX_TITLE, is_inbox
from runs.admin.change_stream import sees_waiting
from runs.queries.waiting import count_waiting

_INBOX = "inbox"
_GROUPS: tuple[tuple[str | Promise, tuple[tuple[str, str], ...]], ...] = (
    (
        _("Work"),
        (
            ("inbox", _INBOX),
            ("play_circle", "runs_run"),
            ("forum", "runs_task"),
            ("inventory_2", "artifacts_artifact"),
            ("web_asset", "runners_browsersession"),
            ("important_devices", "runners_pluginclient"),
            ("folder_managed", "runners_executiontarget"),
            ("memory", "runs_worker"),
            ("webhook", "runs_webhook"),
            ("outgoing_mail", "runs_webhookdelivery"),
            ("gavel", "decisions_decision"),
            ("verified_user", "decisions_auditentry"),
        ),
    ),
    (
        _("User state"),
        (
            ("category", "decisions_userobject"),
            ("fact_check", "decisions_outcome"),
            ("query_stats", "decisions_evidence"),
        ),
    ),
    (
        _("Access"),
        (
            ("policy", "decisions_policyrule"),
            ("key", "decisions_token"),
            ("workspaces", "decisions_workspace"),
            ("domain", "decisions_tenant"),
            ("group", "decisions_user"),
            ("admin_panel_settings", "auth_user"),
        ),
    ),
)


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the sidebar's groups in Unfold's form."""
    index = {
        "title": _("Dashboard"),
        "icon": "dashboard",
        "link": reverse("admin:index"),
        "active": request.path == reverse("admin:index"),
        "permission": lambda _: True,
    }
    groups = [
        {"title": title, "items": [_item(request, *item) for item in items]}
        for title, items in _GROUPS
    ]
    plots = {
        "title": _("Statistics"),
        "icon": "monitoring",
        "link": reverse("admin:statistics"),
        "active": request.path == reverse("admin:statistics"),
        "permission": _has_permission("runs.view_run"),
    }
    return [{"items": [index, plots]}, *groups]


def _item(request: HttpRequest, icon: str, name: str) -> dict[str, Any]:
    if name == _INBOX:
        return _inbox_item(request, icon)
    app_label, model_name = name.split("_")
    link = reverse(f"admin:{name}_changelist")
    return {
        "title": _list_title(app_label, model_name),
        "icon": icon,
        "link": link,
        "active": request.path.startswith(link) and not _shows_inbox(request),
        "permission": _has_permission(f"{app_label}.view_{model_name}"),
    }


def _inbox_item(request: HttpRequest, icon: str) -> dict[str, Any]:
    """Return the item of the list of decisions that wait for a person."""
    return {
        "title": str(INBOX_TITLE),
        "icon": icon,
        "link": f"{reverse('admin:decisions_decision_changelist')}?status=waiting",
        "active": _shows_inbox(request),
        "badge": SimpleLazyObject(lambda: count_waiting(**sees_waiting(request.user))),
        "permission": _has_permission("decisions.view_decision"),
    }


def _shows_inbox(request: HttpRequest) -> bool:
    return request.path == reverse("admin:decisions_decision_changelist") and is_inbox(request)


def _list_title(app_label: str, model_name: str) -> str:
    model_admin: Any = admin.site.get_model_admin(apps.get_model(app_label, model_name))
    return str(model_admin.list_title)


def _has_permission(permission: str) -> Callable[[HttpRequest], bool]:
    return lambda request: request.user.has_perm(permission)
