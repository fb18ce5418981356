"""The sidebar: what an operator looks for, in that order; everybody sees what the permissions
allow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

_GROUPS: tuple[tuple[str, tuple[tuple[str, str, str, str], ...]], ...] = (
    (
        "Work",
        (
            ("Inbox", "inbox", "decisions_decision", "decisions.view_decision"),
            ("Runs", "play_circle", "runs_run", "runs.view_run"),
            ("Tasks", "forum", "runs_task", "runs.view_task"),
            ("Artifacts", "inventory_2", "artifacts_artifact", "artifacts.view_artifact"),
            (
                "Browser sessions",
                "web_asset",
                "runners_browsersession",
                "runners.view_browsersession",
            ),
            (
                "Targets",
                "folder_managed",
                "runners_executiontarget",
                "runners.view_executiontarget",
            ),
            ("Webhooks", "webhook", "runs_webhook", "runs.view_webhook"),
            ("Deliveries", "outgoing_mail", "runs_webhookdelivery", "runs.view_webhookdelivery"),
            ("Audit log", "verified_user", "decisions_auditentry", "decisions.view_auditentry"),
        ),
    ),
    (
        "Continuity",
        (
            ("Objects", "category", "decisions_userobject", "decisions.view_userobject"),
            ("Outcomes", "fact_check", "decisions_outcome", "decisions.view_outcome"),
            ("Evidence", "query_stats", "decisions_evidence", "decisions.view_evidence"),
        ),
    ),
    (
        "Access",
        (
            ("Policy", "policy", "decisions_policyrule", "decisions.view_policyrule"),
            ("Tokens", "key", "decisions_token", "decisions.view_token"),
            ("Workspaces", "workspaces", "decisions_workspace", "decisions.view_workspace"),
            ("Tenants", "domain", "decisions_tenant", "decisions.view_tenant"),
            ("Users", "group", "decisions_user", "decisions.view_user"),
            ("Operators", "admin_panel_settings", "auth_user", "auth.view_user"),
        ),
    ),
    (
        "Machinery",
        (
            ("Workers", "memory", "runs_worker", "runs.view_worker"),
            ("Slots", "view_week", "runs_slot", "runs.view_slot"),
            ("Doorbells", "notifications", "runs_outboxentry", "runs.view_outboxentry"),
        ),
    ),
)

_OPENS_WITH = {"decisions_decision": "?status=waiting"}  # the filter that a list opens with


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the sidebar's groups in Unfold's form."""
    start = {
        "title": "Dashboard",
        "icon": "dashboard",
        "link": reverse("admin:index"),
        "active": request.path == reverse("admin:index"),
        "permission": lambda _: True,
    }
    groups = [
        {"title": title, "items": [_item(request, *item) for item in items]}
        for title, items in _GROUPS
    ]
    return [{"items": [start]}, *groups]


def _item(
    request: HttpRequest, title: str, icon: str, name: str, permission: str
) -> dict[str, Any]:
    link = reverse(f"admin:{name}_changelist")
    return {
        "title": title,
        "icon": icon,
        "link": link + _OPENS_WITH.get(name, ""),
        "active": request.path.startswith(link),
        "permission": _allows(permission),
    }


def _allows(permission: str) -> Callable[[HttpRequest], bool]:
    return lambda request: request.user.has_perm(permission)
