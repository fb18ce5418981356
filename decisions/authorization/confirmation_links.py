"""Signed confirmation links: capability URLs that show one confirmation and allow deciding it.

No login is needed. A link works while its confirmation waits. It is sent only in webhook messages
that an operator subscribed to, never in a response to an agent. An agent's host gets a link to the
same page that requires the login of an operator, so it cannot decide about its own calls.
"""

from __future__ import annotations

from django.conf import settings

from decisions.foundation.security.keys import mac, mac_matches
from decisions.models import Confirmation, ConfirmationStatus

_PURPOSE = "confirm-link"
_SIGN_IN_PURPOSE = "confirm-link-for-operators"


def confirmation_link(confirmation: Confirmation) -> str:
    """Return the link by which anyone who has it can decide the confirmation. Do not store it."""
    signature = mac(_PURPOSE, confirmation.id.encode())
    return f"{settings.PUBLIC_URL}/confirm/{confirmation.id}/{signature}"


def is_signed(confirmation_id: str, signature: str) -> bool:
    """Return whether a link's signature is valid, in constant time."""
    return mac_matches(_PURPOSE, confirmation_id.encode(), signature)


def sign_in_link(decision_id: int | str, address: str) -> str | None:
    """Return the link to the page of the decision's waiting confirmation, on which only an operator
    who signs in can decide; None if there is no such confirmation, or no address of this server.
    """
    address = settings.PUBLIC_URL or address
    waiting = Confirmation.objects.filter(
        decision_id=decision_id, status=ConfirmationStatus.WAITING
    ).first()
    if waiting is None or not address:
        return None
    return f"{address}/confirm/{waiting.id}/{mac(_SIGN_IN_PURPOSE, waiting.id.encode())}"


def is_signed_for_operators(confirmation_id: str, signature: str) -> bool:
    """Return whether a signature is that of `sign_in_link`, in constant time."""
    return mac_matches(_SIGN_IN_PURPOSE, confirmation_id.encode(), signature)
