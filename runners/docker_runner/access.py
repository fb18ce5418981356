"""Access control: no web pages, no foreign host names, no callers without the token."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

from decisions.foundation.security.loopback import is_loopback
from runners.docker_runner.refusals import (
    RequestForbidden,
    RunnerHeadTooLarge,
    TokenMissing,
    UnsupportedContent,
)

HEAD_MAX_BYTES = 64 * 1024
LOOPBACK_NAMES = frozenset({"localhost"})
_FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip")


class AccessControl:
    """The checks of a request's headers.

    Args:
        names: host names of this runner besides localhost.
        is_open: the runner listens on more than loopback, so any literal address may be its own.
            A web page that attacks by DNS rebinding uses a name.
    """

    def __init__(self, token: str | None, *, names: Iterable[str] = (), is_open: bool) -> None:
        self._token = token.encode() if token else None
        self._names = LOOPBACK_NAMES | {name.lower().rstrip(".") for name in names}
        self._is_open = is_open

    def check_origin(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse web pages.

        Raises:
            RequestForbidden: The request has an Origin header, or a Host that is not this runner's.
        """
        if b"origin" in headers:
            raise RequestForbidden("Requests of web pages are refused.")
        if not self._is_own_host(headers.get(b"host", b"").decode("latin-1")):
            raise RequestForbidden("The Host of the request is not a name of this runner.")

    def check_token(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse callers without the token, if one is configured.

        Raises:
            TokenMissing: No token, or a wrong one.
        """
        if self._token is None:
            return
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        right = hmac.compare_digest(given.strip(), self._token)
        if scheme.lower() != b"bearer" or not right:
            raise TokenMissing("A valid bearer token is required: Authorization: Bearer …")

    def is_local(self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> bool:
        """Return whether the caller is a program on this machine, and not a proxy."""
        peer = (scope.get("client") or ("",))[0]
        return is_loopback(peer) and not any(name in headers for name in _FORWARDED)

    def _is_own_host(self, host: str) -> bool:
        name = host.rpartition(":")[0] if _has_port(host) else host
        try:
            address = ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return name.lower().rstrip(".") in self._names
        return self._is_open or address.is_loopback


def check_head(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse headers that are too large.

    Raises:
        RunnerHeadTooLarge: They have more than HEAD_MAX_BYTES.
    """
    if sum(len(name) + len(value) + 4 for name, value in headers) > HEAD_MAX_BYTES:
        raise RunnerHeadTooLarge(f"The headers have more than {HEAD_MAX_BYTES} bytes.")


def check_content(headers: Mapping[bytes, bytes]) -> None:
    """Refuse a body that is not plain JSON.

    Raises:
        UnsupportedContent: Its content type or content encoding is not accepted.
    """
    kind, _, rest = headers.get(b"content-type", b"").decode("latin-1").lower().partition(";")
    charset = rest.replace(" ", "").replace('"', "")
    if kind.strip() != "application/json" or charset not in {"", "charset=utf-8"}:
        raise UnsupportedContent("The content type must be application/json.")
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise UnsupportedContent("The body must have no content encoding.")


def _has_port(host: str) -> bool:
    head, colon, port = host.rpartition(":")
    return bool(colon) and port.isdigit() and (":" not in head or head.endswith("]"))
