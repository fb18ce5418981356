"""The settings of e-mail, which tells people what waits for them."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.validators import validate_email
from environ import Env

TIMEOUT_S = 10
_NONE = "django.core.mail.backends.dummy.EmailBackend"
_SCHEMES = ("smtp", "smtps", "smtp+tls", "smtp+ssl", "consolemail", "filemail")


def mail_settings(env: Env) -> dict[str, Any]:
    """Return Django's EMAIL_* settings from CONTINUITY_EMAIL_URL, CONTINUITY_EMAIL_FROM and
    CONTINUITY_EMAIL_TO; without a URL, none is sent.

    Raises:
        ImproperlyConfigured: A value is wrong, or one of the three is missing.
    """
    url = env.str("CONTINUITY_EMAIL_URL", "").strip()
    sender = env.str("CONTINUITY_EMAIL_FROM", "").strip()
    to = [address.strip() for address in env.str("CONTINUITY_EMAIL_TO", "").split(",")]
    to = [address for address in to if address]
    if not url:
        return {"WAITING_EMAIL_TO": [], "EMAIL_BACKEND": _NONE}
    if not sender or not to:
        raise ImproperlyConfigured(
            "CONTINUITY_EMAIL_URL is set, so CONTINUITY_EMAIL_FROM (one address) and"
            " CONTINUITY_EMAIL_TO (addresses, separated by commas) are needed too."
        )
    for address in (sender, *to):
        _check_address(address)
    return {
        **_backend(url),
        "EMAIL_TIMEOUT": TIMEOUT_S,
        "DEFAULT_FROM_EMAIL": sender,
        "WAITING_EMAIL_TO": to,
    }


def _backend(url: str) -> dict[str, Any]:
    try:
        if url.partition("://")[0] not in _SCHEMES:
            raise ValueError(url)
        return dict(Env.email_url_config(url))
    except (ValueError, KeyError, ImproperlyConfigured):
        raise ImproperlyConfigured(
            "CONTINUITY_EMAIL_URL must be a URL such as smtp+tls://user:password@mail.example:587;"
            f" schemes: {', '.join(_SCHEMES)}."
        ) from None


def _check_address(address: str) -> None:
    try:
        validate_email(address)
    except ValidationError as error:
        raise ImproperlyConfigured(
            f"CONTINUITY_EMAIL_FROM and CONTINUITY_EMAIL_TO: {address[:80]!r} is no e-mail address."
        ) from error
