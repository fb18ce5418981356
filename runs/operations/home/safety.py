"""Refuse to start with settings that would expose the installation."""

from __future__ import annotations

from django.conf import settings

from decisions.foundation.security.loopback import is_loopback
from runs.operations.home.errors import UnsafeStart

KEY_LENGTH_MIN = 32
_LOCAL_NAMES = {"127.0.0.1", "localhost", "[::1]"}


def refuse_unsafe_start(host: str) -> None:
    """Check the settings for the address to listen on.

    Raises:
        UnsafeStart: A secret key is too short; or the address is not loopback, and only local host
            names are allowed.
    """
    if min(map(len, settings.CONTINUITY_SECRET_KEYS)) < KEY_LENGTH_MIN:
        raise UnsafeStart(
            f"CONTINUITY_SECRET_KEYS holds a key shorter than {KEY_LENGTH_MIN} characters, which"
            " can be guessed. Generate one with"
            " `python3 -c 'import secrets; print(secrets.token_urlsafe(48))'`."
        )
    if is_loopback(host):
        return
    if not set(settings.ALLOWED_HOSTS) - _LOCAL_NAMES:
        raise UnsafeStart(
            f"{host} is reachable from other machines, but CONTINUITY_ALLOWED_HOSTS names none that"
            " they may use. Set it to the names of this server, separated by commas, or listen on"
            " 127.0.0.1."
        )
