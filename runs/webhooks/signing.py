"""Secrets and signatures of webhooks, in the form of the Standard Webhooks specification."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

PREFIX = "whsec_"


def new_secret() -> str:
    """Return a fresh secret: `whsec_` and 32 random bytes in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signature(secret: str, *, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of `webhook-signature`: HMAC-SHA256 over `id.timestamp.body`."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = b"%b.%d.%b" % (message_id.encode(), timestamp, body)
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def headers(secret: str, *, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers that a receiver checks; `timestamp` is in Unix seconds."""
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(
            secret, message_id=message_id, timestamp=timestamp, body=body
        ),
    }
