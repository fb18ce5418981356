"""The page of a signed link: its GET shows what waits, only its POST decides. A program that
fetches addresses decides nothing.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from decisions.audit.record import AuditEvent, record
from decisions.authorization.confirmation_links import is_signed
from decisions.authorization.confirmations import confirm, refuse
from decisions.errors import Conflict
from decisions.models import AuditEntry, Confirmation, ConfirmationStatus
from decisions.presentation.formatting import duration, exact_json

TRIES_TOLD = (
    5  # wrong signatures of one confirmation that the audit log tells: anybody may send them
)
_DEEDS = {"confirm": confirm, "refuse": refuse}
_ID = re.compile(r"cnf_\w{1,64}", re.ASCII)


@never_cache
@require_http_methods(["GET", "POST"])
def confirm_page(request: HttpRequest, confirmation_id: str, signature: str) -> HttpResponse:
    """Show what waits (GET), or decide it (POST, `answer` is confirm or refuse)."""
    if not _ID.fullmatch(confirmation_id):
        return _page(request, None, status=404)
    if not is_signed(confirmation_id, signature):
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
    deed = _DEEDS.get(request.POST.get("answer", ""))
    if deed is None:
        return _page(request, confirmation, status=400)
    try:
        done = deed(decision_id=confirmation.decision_id, by=_who(request), how="link")
    except Conflict:
        confirmation.refresh_from_db()
        return _page(request, confirmation, status=409)
    return _page(request, done)


def _who(request: HttpRequest) -> str:
    """Return who decides: somebody who is signed in at the admin site by name, else the link."""
    user = request.user
    return f"admin:{user.get_username()}" if user.is_authenticated and user.is_staff else "link"


def _page(
    request: HttpRequest, confirmation: Confirmation | None, *, status: int = 200
) -> HttpResponse:
    answer = render(request, "decisions/confirm_link.html", _shown(confirmation), status=status)
    answer["Content-Security-Policy"] = (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self';"
        " frame-ancestors 'none'; base-uri 'none'"
    )
    # The address is the permission, so no other site may hear it. `no-referrer` would have browsers
    # post the form from the origin `null`, which no check against other sites' forms lets pass.
    answer["Referrer-Policy"] = "same-origin"
    return answer


def _record_wrong_signature(confirmation_id: str) -> None:
    """Write down that somebody tries, where it still waits, and not more than a few times."""
    tried = Confirmation.objects.select_related("decision").filter(
        id=confirmation_id, status=ConfirmationStatus.WAITING, expires_at__gt=datetime.now(UTC)
    )
    if (confirmation := tried.first()) is None:
        return
    decision = confirmation.decision
    told = AuditEntry.objects.filter(
        resource_id=str(decision.pk),
        resource_type="decision",
        action="confirmation.tried",
        actor="anonymous",
    ).count()
    if told < TRIES_TOLD:
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
                    **({"more": "are not told"} if told + 1 == TRIES_TOLD else {}),
                },
            )
        )


def _shown(confirmation: Confirmation | None) -> dict[str, object]:
    if confirmation is None:
        return {}
    left_s = (confirmation.expires_at - datetime.now(UTC)).total_seconds()
    waits = confirmation.status == ConfirmationStatus.WAITING and left_s > 0
    late = confirmation.status == ConfirmationStatus.WAITING and not waits
    decision = confirmation.decision
    return {
        "confirmation": confirmation,
        "decision": decision,
        "waits": waits,
        "state": "expired" if late else confirmation.status,
        "arguments": exact_json(decision.arguments) if decision.arguments else "",
        "left": duration(max(0.0, left_s) * 1000),
    }
