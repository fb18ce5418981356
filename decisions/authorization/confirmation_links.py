"""Signed confirmation links: capability URLs that show one confirmation and allow deciding it.

No login is needed. A link works while its confirmation waits. It is sent only in webhook messages
that an operator subscribed to, never in a response to an agent.
"""

from __future__ import annotations

from django.conf import settings

from decisions.models import Confirmation
from decisions.security.keys import mac, mac_matches

_PURPOSE = "confirm-link"


def confirmation_link(confirmation: Confirmation) -> str:
    """Return the link by which anyone who has it can decide the confirmation. Do not store it."""
    signature = mac(_PURPOSE, confirmation.id.encode())
    return f"{settings.PUBLIC_URL}/confirm/{confirmation.id}/{signature}"


def is_signed(confirmation_id: str, signature: str) -> bool:
    """Tell whether a link's signature is valid, in constant time."""
    return mac_matches(_PURPOSE, confirmation_id.encode(), signature)
