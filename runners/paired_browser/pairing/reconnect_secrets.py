"""Reconnect secrets: what a paired browser proves itself with. Each connection gives it a new one.

A secret names its generation and carries a MAC, so that the server recognizes an earlier secret of
a browser without storing it: who presents one has copied it. Only digests are stored.
"""

from __future__ import annotations

import re
import secrets
from typing import Literal

from decisions.foundation.security.keys import mac, mac_matches, macs
from runners.models import PluginClient

_PURPOSE, _ORIGIN = "plugin secret", "plugin secret origin"
_FORMAT = re.compile(r"pls_([1-9][0-9]{0,9})_([A-Za-z0-9_-]{43})_([0-9a-f]{64})")
Standing = Literal["current", "previous", "earlier", "unknown"]


def new_secret(client_id: str, generation: int) -> tuple[str, str]:
    """Return a new secret of a browser, and its digest."""
    chance = secrets.token_urlsafe(32)
    origin = mac(_ORIGIN, _signed(client_id, str(generation), chance))
    secret = f"pls_{generation}_{chance}_{origin}"
    return secret, mac(_PURPOSE, secret.encode())


def standing_of(secret: str, client: PluginClient) -> Standing:
    """Return what a presented secret is to a browser: its current or previous one, an earlier one
    of it, or none of its secrets.
    """
    parts = _FORMAT.fullmatch(secret)
    if parts is None:
        return "unknown"
    digests = macs(_PURPOSE, secret.encode())
    if client.secret_digest in digests:
        return "current"
    if client.previous_digest in digests:
        return "previous"
    generation, chance, origin = parts.groups()
    is_genuine = mac_matches(_ORIGIN, _signed(client.id, generation, chance), origin)
    return "earlier" if is_genuine and int(generation) <= client.generation else "unknown"


def _signed(client_id: str, generation: str, chance: str) -> bytes:
    return f"{client_id}:{generation}:{chance}".encode()
