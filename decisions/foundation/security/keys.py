"""The installation's secret keys: encryption at rest, keyed digests and MACs.

The newest key of CONTINUITY_SECRET_KEYS encrypts and signs; older keys still decrypt and verify.
To look up a stored digest, compare it with the digests under all keys: `macs`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from django.conf import settings

_VERSION = b"v2:"  # a value without it is of the first version
_NONCE_BYTES = 12
_START = len(_VERSION) + _NONCE_BYTES
_CANNOT_DECRYPT = (
    "cannot decrypt: encrypted for another purpose or row or under a key that is not configured, or"
    " modified since"
)


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


def seal(plain: bytes, *, purpose: str, bound_to: str) -> bytes:
    """Encrypt bytes with AES-256-GCM under the newest key.

    Args:
        purpose: the use of the value; each has a key of its own.
        bound_to: what the value belongs to, such as the id of its row; authenticated, not stored.
    """
    nonce = os.urandom(_NONCE_BYTES)
    encrypted = AESGCM(_keys(purpose)[0]).encrypt(nonce, plain, bound_to.encode())
    return _VERSION + nonce + encrypted


def unseal(sealed: bytes, *, purpose: str, bound_to: str) -> bytes:
    """Decrypt what `seal` returned for the same purpose and binding.

    Raises:
        ValueError: Encrypted for another purpose or binding, or under a key that is not configured,
            or modified since.
    """
    for key in _keys(purpose):
        with suppress(ValueError):
            return _decrypt(key, sealed, bound_to)
    raise ValueError(_CANNOT_DECRYPT)


def is_current(sealed: bytes, *, purpose: str, bound_to: str) -> bool:
    """Return whether a value is of the present version and under the newest key."""
    try:
        _decrypt(_keys(purpose)[0], sealed, bound_to)
    except ValueError:
        return False
    return True


def _decrypt(key: bytes, sealed: bytes, bound_to: str) -> bytes:
    nonce, encrypted = sealed[len(_VERSION) : _START], sealed[_START:]
    if is_unbound(sealed) or len(nonce) < _NONCE_BYTES:
        raise ValueError(_CANNOT_DECRYPT)
    try:
        return AESGCM(key).decrypt(nonce, encrypted, bound_to.encode())
    except InvalidTag:
        raise ValueError(_CANNOT_DECRYPT) from None


def is_unbound(sealed: bytes) -> bool:
    """Return whether a value is of the first version, which had one key for all and no binding."""
    return not sealed.startswith(_VERSION)


def seal_unbound(plain: bytes) -> bytes:
    """Encrypt bytes as the first version did, for processes that read no others."""
    return _unbound_keys()[0].encrypt(plain)


def unseal_unbound(sealed: bytes) -> bytes:
    """Decrypt a value of the first version.

    Raises:
        ValueError: As `unseal`.
    """
    try:
        return MultiFernet(_unbound_keys()).decrypt(sealed)
    except InvalidToken:
        raise ValueError(_CANNOT_DECRYPT) from None


def is_current_unbound(sealed: bytes) -> bool:
    """Return whether a value is of the first version and under the newest key."""
    try:
        _unbound_keys()[0].decrypt(sealed)
    except InvalidToken:
        return False
    return True


def _unbound_keys() -> list[Fernet]:
    return [Fernet(base64.urlsafe_b64encode(key)) for key in _keys("seal")]


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
    """Return whether `given` is the message's MAC under any configured key, in constant time."""
    if not given.isascii():
        return False
    for prepared in _prepared(tuple(settings.CONTINUITY_SECRET_KEYS), purpose):
        if hmac.compare_digest(_hex(prepared, message), given):
            return True
    return False
