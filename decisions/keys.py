"""The installation's secret keys and what is made with them: sealing, keyed digests, MACs.

The newest key seals and signs; older ones (CONTINUITY_SECRET_KEYS) still open and check what they
made.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


@lru_cache(maxsize=64)
def _derive(key: str, purpose: str) -> bytes:
    return hmac.new(key.encode(), purpose.encode(), hashlib.sha256).digest()


def _keys(purpose: str) -> list[bytes]:
    return [_derive(key, purpose) for key in settings.CONTINUITY_SECRET_KEYS]


def _fernet() -> MultiFernet:
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in _keys("seal")])


def seal(plain: bytes) -> bytes:
    """Encrypt for storage at rest."""
    return _fernet().encrypt(plain)


def unseal(sealed: bytes) -> bytes:
    """Return what was sealed.

    Raises:
        ValueError: Sealed under a key that is no longer configured, or altered.
    """
    try:
        return _fernet().decrypt(sealed)
    except InvalidToken:
        raise ValueError("sealed under a key that is not configured, or altered") from None


def mac(purpose: str, message: bytes) -> str:
    """Return the message's MAC under the newest key, 64 hex digits."""
    return hmac.new(_keys(purpose)[0], message, hashlib.sha256).hexdigest()


def mac_matches(purpose: str, message: bytes, given: str) -> bool:
    """Tell, in constant time per key, whether `given` is the message's MAC under any configured
    key.
    """
    return any(
        hmac.compare_digest(
            hmac.new(key, message, hashlib.sha256).hexdigest().encode(), given.encode()
        )
        for key in _keys(purpose)
    )
