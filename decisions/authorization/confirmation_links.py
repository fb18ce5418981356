"""Signed links: who holds one may look at what waits and decide it, signed in or not.

A link names one confirmation and is good for as long as that waits. It goes out in webhook messages
that an operator asked for, never in an answer to an agent.
"""

from __future__ import annotations

from django.conf import settings

from decisions.models import Confirmation
from decisions.security.keys import mac, mac_matches

_PURPOSE = "confirm-link"


def confirmation_link(confirmation: Confirmation) -> str:
    """Return the link of a confirmation, which whoever holds it can decide with: to be sent to
    people, and to be kept nowhere.
    """
    signature = mac(_PURPOSE, confirmation.id.encode())
    return f"{settings.PUBLIC_URL}/confirm/{confirmation.id}/{signature}"


def is_signed(confirmation_id: str, signature: str) -> bool:
    """Tell, in constant time, whether a link's signature is ours."""
    return mac_matches(_PURPOSE, confirmation_id.encode(), signature)
