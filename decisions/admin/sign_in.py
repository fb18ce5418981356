"""Audit every sign-in to and sign-out from the admin, with a password or a one-time link."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from decisions.audit.record import AuditEvent, record
from decisions.identity.one_time_login import one_time_login_allowed
from decisions.identity.principals import ensure_workspace

admin.site.login_template = "admin/decisions/login.html"


def site_context(request: HttpRequest) -> dict[str, Any]:
    """Return the context of every admin page (UNFOLD's GLOBAL_CALLBACK)."""
    return {"one_time_login": one_time_login_allowed()}


def _record(action: str, actor: str, request: HttpRequest | None) -> None:
    workspace = ensure_workspace()
    peer = request.META.get("REMOTE_ADDR", "") if request is not None else ""
    record(
        AuditEvent(
            action,
            actor,
            "operator",
            actor,
            workspace.tenant_id,
            workspace.id,
            {"peer": peer},
        )
    )


@receiver(user_logged_in, dispatch_uid="continuity_signed_in")
def _signed_in(sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    _record("operator.signed_in", f"admin:{user.get_username()}", request)


@receiver(user_logged_out, dispatch_uid="continuity_signed_out")
def _signed_out(sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    if user is not None:
        _record("operator.signed_out", f"admin:{user.get_username()}", request)


@receiver(user_login_failed, dispatch_uid="continuity_sign_in_failed")
def _sign_in_failed(sender: Any, request: HttpRequest | None = None, **kwargs: Any) -> None:
    """Record the attempt without the user name: people type passwords into that field."""
    _record("operator.sign_in_failed", "anonymous", request)
