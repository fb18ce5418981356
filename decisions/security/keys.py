"""The installation's secret keys: encryption at rest, keyed digests and MACs.

The newest key of CONTINUITY_SECRET_KEYS encrypts and signs; older keys still decrypt and verify.
To look up a stored digest, compare it with the digests under all keys: `macs`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from django.conf import settings


@lru_cache(maxsize=64)
def _derive(key: str, purpose: str) -> bytes:
    return hmac.new(key.encode(), purpose.encode(), hashlib.sha256).digest()


def _keys(purpose: str) -> list[bytes]:
    return [_derive(key, purpose) for key in settings.CONTINUITY_SECRET_KEYS]


def key_fingerprints(keys: Iterable[str] | None = None) -> list[str]:
    """Return fingerprints by which two installations can compare their keys without revealing
    them; by default of the configured keys.
    """
    wanted = settings.CONTINUITY_SECRET_KEYS if keys is None else keys
    return [_derive(key, "mark").hex()[:32] for key in wanted]


def _fernet(purpose: str) -> MultiFernet:
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in _keys(purpose)])


def seal(plain: bytes, *, purpose: str = "seal") -> bytes:
    """Encrypt bytes, by default for storage; only `unseal` with the same purpose decrypts them."""
    return _fernet(purpose).encrypt(plain)


def unseal(sealed: bytes, *, purpose: str = "seal") -> bytes:
    """Decrypt what `seal` returned.

    Raises:
        ValueError: Encrypted for another purpose or under a key that is no longer configured, or
            modified since.
    """
    try:
        return _fernet(purpose).decrypt(sealed)
    except InvalidToken:
        raise ValueError(
            "cannot decrypt: encrypted under a key that is not configured, or modified since"
        ) from None


@lru_cache(maxsize=64)
def _prepared(keys: tuple[str, ...], purpose: str) -> tuple[HMAC, ...]:
    """Return an HMAC-SHA256 for each key, to be copied for each message.

    A copy takes less than half the time of `hmac.digest`, which matters when the whole log is
    verified.
    """
    return tuple(HMAC(_derive(key, purpose), SHA256()) for key in keys)


def _hex(prepared: HMAC, message: bytes) -> str:
    one = prepared.copy()
    one.update(message)
    return one.finalize().hex()


def mac(purpose: str, message: bytes) -> str:
    """Return the message's MAC under the newest key, 64 hex digits."""
    return _hex(_prepared(tuple(settings.CONTINUITY_SECRET_KEYS), purpose)[0], message)


def macs(purpose: str, message: bytes) -> tuple[str, ...]:
    """Return the message's MAC under each configured key, newest first: to look up a digest that
    was stored before a key rotation.
    """
    keys = tuple(settings.CONTINUITY_SECRET_KEYS)
    return tuple(_hex(prepared, message) for prepared in _prepared(keys, purpose))


def mac_matches(purpose: str, message: bytes, given: str) -> bool:
    """Tell whether `given` is the message's MAC under any configured key, in constant time."""
    if not given.isascii():
        return False
    for prepared in _prepared(tuple(settings.CONTINUITY_SECRET_KEYS), purpose):
        if hmac.compare_digest(_hex(prepared, message), given):
            return True
    return False
