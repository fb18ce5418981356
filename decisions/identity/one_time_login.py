"""One-time login links to the admin site, for local installations without a password.

A link has 256 random bits and works once, for 15 minutes; the database stores a keyed digest. Its
GET shows a page with a form that submits itself, so that link previews and scanners, which only
fetch the URL, do not use it up.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth import get_user_model, login
from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from decisions.audit.anonymous_events import record_anonymous
from decisions.audit.record import AuditEvent, record
from decisions.foundation.errors import Forbidden
from decisions.foundation.security.keys import mac, macs
from decisions.identity.principals import admin_id, ensure_workspace
from decisions.models import LoginLink

if TYPE_CHECKING:
    from django.contrib.auth.models import User as Account

LIFETIME = timedelta(minutes=15)
ROW_RETENTION = timedelta(days=1)  # rows of expired links tell reuse from a guessed link
_PURPOSE = "login"  # key-derivation purpose of the links' digests
LOCAL_ADMIN = "admin"


def one_time_login_allowed() -> bool:
    """Return whether this installation has such links, by default if its database is embedded."""
    return bool(settings.ONE_TIME_LOGIN)


def create_login_path() -> str:
    """Create a link that signs its first visitor in at the admin site; return its path. Commits.

    Raises:
        Forbidden: One-time logins are off: DATABASE_URL names a shared database.
    """
    if not one_time_login_allowed():
        raise Forbidden(
            "One-time links work with the embedded database only, and DATABASE_URL is set."
            " Sign in with a password; `manage.py createsuperuser` creates an account."
        )
    token = secrets.token_urlsafe(32)
    now = datetime.now(UTC)
    with transaction.atomic():
        LoginLink.objects.filter(expires_at__lt=now - ROW_RETENTION).delete()
        link = LoginLink.objects.create(
            digest=mac(_PURPOSE, token.encode()), created_at=now, expires_at=now + LIFETIME
        )
        record(_audit_event("login_link.created", "command", link))
    return f"/admin/once/{token}/"


def _audit_event(action: str, actor: str, link: LoginLink, **metadata: str) -> AuditEvent:
    local = ensure_workspace()
    return AuditEvent(
        action, actor, "login_link", str(link.pk), local.tenant_id, local.id, metadata
    )


@never_cache
@require_http_methods(["GET", "POST"])
def one_time_login(request: HttpRequest, token: str) -> HttpResponse:
    """Show the page that submits itself (GET), or use the link and sign the visitor in (POST)."""
    link = LoginLink.objects.filter(digest__in=macs(_PURPOSE, token.encode())).first()
    if not one_time_login_allowed() or link is None or _is_spent(link):
        return _refuse(request, link)
    if request.method == "GET":
        return _page(request, 200, {"nonce": secrets.token_urlsafe(16)})
    with transaction.atomic():
        user = _use(link)
        if user is not None:
            login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    if user is None:
        return _refuse(request, link)
    return redirect("admin:index")


def _is_spent(link: LoginLink) -> bool:
    return link.used_at is not None or link.expires_at <= datetime.now(UTC)


def _use(link: LoginLink) -> Account | None:
    """Mark the link used and return the account to sign in; None if another request used it first,
    or the account is inactive.
    """
    now = datetime.now(UTC)
    unused = LoginLink.objects.filter(pk=link.pk, used_at__isnull=True, expires_at__gt=now)
    if not unused.update(used_at=now):
        return None
    user = _local_admin()
    if not (user.is_active and user.is_staff):
        return None
    record(_audit_event("login_link.used", admin_id(user.get_username()), link))
    return user


def _local_admin() -> Account:
    """Return the local admin account, created if needed as a superuser without a password."""
    accounts: type[Account] = get_user_model()
    unusable = {"is_staff": True, "is_superuser": True, "password": make_password(None)}
    return accounts.objects.get_or_create(username=LOCAL_ADMIN, defaults=unusable)[0]


def _refuse(request: HttpRequest, link: LoginLink | None) -> HttpResponse:
    """Respond that the link does not work; redirect a signed-in admin user to the admin site."""
    if request.user.is_authenticated and request.user.is_staff:
        return redirect("admin:index")
    if link is not None:
        reason = "used" if link.used_at else "expired" if _is_spent(link) else "not allowed"
        event = _audit_event("login_link.refused", "anonymous", link, reason=reason)
        record_anonymous(event, peer=request.META.get("REMOTE_ADDR", ""))
    return _page(request, 410, {"minutes": int(LIFETIME.total_seconds() // 60)})


def _page(request: HttpRequest, status: int, context: dict[str, object]) -> HttpResponse:
    response = render(request, "decisions/one_time_login.html", context, status=status)
    script = f"'nonce-{context['nonce']}'" if "nonce" in context else "'none'"
    response["Content-Security-Policy"] = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {script};"
        " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
    return response
