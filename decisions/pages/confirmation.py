"""The page of a signed confirmation link.

GET shows the confirmation and only POST decides it, so that link previews decide nothing. The link
that an agent's host gets requires the login of an operator for both.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from decisions.audit.record import AuditEvent, record
from decisions.authorization.confirmation_links import is_signed, is_signed_for_operators
from decisions.authorization.confirmations import ANSWERS, MAY_DECIDE, decide
from decisions.authorization.decision_pages import decision_page
from decisions.authorization.request_lines import request_line
from decisions.foundation.errors import Conflict
from decisions.foundation.presentation.formatting import duration
from decisions.foundation.presentation.refusals import refusal_text
from decisions.identity.principals import admin_id
from decisions.models import AuditEntry, Confirmation, ConfirmationStatus

TRIES_RECORDED = 5  # audited wrong signatures per confirmation: anyone can cause them
_ID = re.compile(r"cnf_\w{1,64}", re.ASCII)


@never_cache
@require_http_methods(["GET", "POST"])
def confirm_page(request: HttpRequest, confirmation_id: str, signature: str) -> HttpResponse:
    """Show the confirmation (GET), or decide it (POST with `answer` confirm, refuse or renew)."""
    if not _ID.fullmatch(confirmation_id):
        return _page(request, None, status=404)
    if is_signed_for_operators(confirmation_id, signature):
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path(), reverse("admin:login"))
        if not (request.user.is_staff and request.user.has_perm(MAY_DECIDE)):
            raise PermissionDenied
    elif not is_signed(confirmation_id, signature):
        _record_wrong_signature(confirmation_id)
        return _page(request, None, status=404)
    rows = Confirmation.objects.select_related("decision")
    confirmation = rows.filter(id=confirmation_id).first()
    if confirmation is None:
        return _page(request, None, status=404)
    if request.method == "GET":
        return _page(request, confirmation)
    return _decide(request, confirmation)


def _decide(request: HttpRequest, confirmation: Confirmation) -> HttpResponse:
    answer = request.POST.get("answer", "")
    if answer not in ANSWERS:
        return _page(request, confirmation, status=400)
    try:
        decided = decide(
            answer=answer,
            decision_id=confirmation.decision_id,
            by=_actor(request),
            how="link",
            shown=request.POST.get("shown"),
        )
    except Conflict as refusal:
        confirmation.refresh_from_db()
        return _page(request, confirmation, status=409, refusal=refusal_text(refusal.message))
    return _page(request, decided)


def _actor(request: HttpRequest) -> str:
    """Return the actor of the decision: the signed-in admin user, else `link`."""
    user = request.user
    return admin_id(user.get_username()) if user.is_authenticated and user.is_staff else "link"


def _page(
    request: HttpRequest,
    confirmation: Confirmation | None,
    *,
    status: int = 200,
    refusal: str = "",
) -> HttpResponse:
    context = {} if confirmation is None else _context(request, confirmation)
    context["refusal"] = refusal
    response = render(request, "decisions/confirm_link.html", context, status=status)
    response["Content-Security-Policy"] = (
        "default-src 'none'; style-src 'self' 'unsafe-inline'; form-action 'self';"
        " frame-ancestors 'none'; base-uri 'none'"
    )
    # The URL is a capability, so it must not leak to other sites. With `no-referrer`, browsers
    # would send `Origin: null` with the form, which the CSRF check refuses.
    response["Referrer-Policy"] = "same-origin"
    return response


def _record_wrong_signature(confirmation_id: str) -> None:
    """Audit a wrong signature for a waiting confirmation, at most TRIES_RECORDED times."""
    waiting = Confirmation.objects.select_related("decision").filter(
        id=confirmation_id, status=ConfirmationStatus.WAITING, expires_at__gt=datetime.now(UTC)
    )
    if (confirmation := waiting.first()) is None:
        return
    decision = confirmation.decision
    recorded = AuditEntry.objects.filter(
        resource_id=str(decision.pk),
        resource_type="decision",
        action="confirmation.tried",
        actor="anonymous",
    ).count()
    if recorded < TRIES_RECORDED:
        record(
            AuditEvent(
                "confirmation.tried",
                "anonymous",
                "decision",
                str(decision.pk),
                decision.tenant_id,
                decision.workspace_id,
                {
                    "how": "link",
                    "failed": "wrong signature",
                    "confirmationId": confirmation.id,
                    **({"more": "are not recorded"} if recorded + 1 == TRIES_RECORDED else {}),
                },
            )
        )


def _context(request: HttpRequest, confirmation: Confirmation) -> dict[str, object]:
    left_s = (confirmation.expires_at - datetime.now(UTC)).total_seconds()
    waits = confirmation.status == ConfirmationStatus.WAITING and left_s > 0
    is_overdue = confirmation.status == ConfirmationStatus.WAITING and not waits
    decision = confirmation.decision
    return {
        "confirmation": confirmation,
        "decision": decision,
        "line": request_line(decision),
        "waits": waits,
        "state": "expired" if is_overdue else confirmation.status,
        "page": decision_page(decision, request.GET.get("page", 1)) if waits else None,
        "left": duration(max(0.0, left_s) * 1000),
    }
