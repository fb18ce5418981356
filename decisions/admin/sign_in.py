"""Sign-in to the admin with a password, with limited tries; audit of every sign-in and sign-out."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.contrib import admin
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.core.exceptions import ValidationError
from django.dispatch import receiver
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from unfold.forms import AuthenticationForm

from decisions.audit.anonymous_events import record_anonymous
from decisions.audit.record import AuditEvent, record
from decisions.identity.one_time_login import one_time_login_allowed
from decisions.identity.principals import admin_id, ensure_workspace
from decisions.identity.sign_in_limits import SignInLimiter, counts_of, remember_browser

_limiter = SignInLimiter()


class SignInForm(AuthenticationForm):
    """The form of the sign-in page; after too many tries it does not check the password.

    Attributes:
        wait_s: after how many seconds the next try is possible; 0 if this one was checked.
    """

    wait_s = 0

    def clean(self) -> dict[str, Any]:
        """Check the name and the password.

        Raises:
            ValidationError: They are wrong, or there were too many tries.
        """
        counts = counts_of(self.request, self.cleaned_data.get("username") or "")
        self.wait_s = _limiter.begin_try(counts)
        if self.wait_s:
            _record_failure("operator.sign_in_throttled", self.request)
            raise ValidationError(
                _("Too many tries. Wait %(wait)s s, then try again."),
                code="throttled",
                params={"wait": self.wait_s},
            )
        cleaned: dict[str, Any] = super().clean()
        _limiter.end_try(counts)
        return cleaned


admin.site.login_template = "admin/decisions/login.html"
admin.site.login_form = SignInForm


def sign_in(request: HttpRequest) -> HttpResponseBase:
    """Show the sign-in page (GET), or sign in with a name and a password (POST)."""
    response = admin.site.login(request)
    form = getattr(response, "context_data", {}).get("form")
    if isinstance(form, SignInForm) and form.wait_s:
        response.status_code = HTTPStatus.TOO_MANY_REQUESTS
        response["Retry-After"] = str(form.wait_s)
    elif request.method == "POST" and response.status_code == HTTPStatus.FOUND:
        remember_browser(request, response, request.user.get_username())
    return response


def site_context(request: HttpRequest) -> dict[str, Any]:
    """Return the context of every admin page (UNFOLD's GLOBAL_CALLBACK)."""
    return {"one_time_login": one_time_login_allowed()}


def _event(action: str, actor: str, **metadata: str) -> AuditEvent:
    workspace = ensure_workspace()
    return AuditEvent(action, actor, "operator", actor, workspace.tenant_id, workspace.id, metadata)


def _peer(request: HttpRequest | None) -> str:
    return request.META.get("REMOTE_ADDR", "") if request is not None else ""


def _record_failure(action: str, request: HttpRequest | None) -> None:
    """Record a try without the user name: people type passwords into that field."""
    record_anonymous(_event(action, "anonymous"), peer=_peer(request))


@receiver(user_logged_in, dispatch_uid="continuity_signed_in")
def _signed_in(sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    actor = admin_id(user.get_username())
    record(_event("operator.signed_in", actor, peer=_peer(request)))


@receiver(user_logged_out, dispatch_uid="continuity_signed_out")
def _signed_out(sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    if user is not None:
        actor = admin_id(user.get_username())
        record(_event("operator.signed_out", actor, peer=_peer(request)))


@receiver(user_login_failed, dispatch_uid="continuity_sign_in_failed")
def _sign_in_failed(sender: Any, request: HttpRequest | None = None, **kwargs: Any) -> None:
    _record_failure("operator.sign_in_failed", request)
