"""Classify an error of a provider's library: retry at once, wait, or fail.

Messages never contain the key, and for a rejected key not the server's text, which may repeat it.
"""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Mapping

import httpx2

from runners.errors import ModelRefused, ModelUnavailable, ToolFailed
from runners.llm.base import LlmSettings
from runners.llm.provider import ServerBusy, StreamCut

_BUSY = frozenset({408, 409, 425, 429})
MAX_RETRY_AFTER_S = 30 * 86_400.0  # a longer requested wait is treated as this


def classify_error(
    error: Exception, settings: LlmSettings, *, has_started: bool = True
) -> StreamCut | ServerBusy | ToolFailed:
    """Return how the gateway handles an error.

    Args:
        has_started: the response headers were received, so that a stream was interrupted.
    """
    if isinstance(error, StreamCut):
        return error
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status >= 400:
        return _of_status(status, error, settings)
    cause = error if isinstance(error, httpx2.HTTPError) else error.__cause__
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.UnsupportedProtocol):
        return ModelUnavailable(
            f"The model's server at {settings.location} cannot be reached:"
            f" {_short(cause, settings)}.",
            details={"model": settings.model},
        )
    if not has_started:
        # Usually a pooled connection that the server closed as it was used.
        message = f"the connection was lost before the response: {_short(error, settings)}"
        return ServerBusy(message, status=None, retry_after_s=None)
    return StreamCut(f"{type(error).__name__}: {_short(error, settings)}")


def _of_status(status: int, error: Exception, settings: LlmSettings) -> ServerBusy | ToolFailed:
    details = {"model": settings.model, "status": status}
    if status in (401, 403):  # the server's text may repeat the key
        setting = "CONTINUITY_LLM_API_KEY" + ("" if settings.api_key else ", which is not set")
        return ModelUnavailable(
            f"The model's server at {settings.location} rejects the key ({status}):"
            f" check {setting}.",
            details=details,
        )
    if status == 404:
        return ModelUnavailable(
            f"The model's server at {settings.location} has no model {settings.model!r}, or"
            f" the URL is wrong (404): {_short(error, settings)}",
            details=details,
        )
    if status in _BUSY or status >= 500:
        headers = getattr(getattr(error, "response", None), "headers", {})
        return ServerBusy(
            f"the server answered {status}: {_short(error, settings)}",
            status=status,
            retry_after_s=retry_after(headers),
        )
    return ModelRefused(
        f"The model's server rejects the request ({status}): {_short(error, settings)}",
        details=details,
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait that a response requests, or None.

    It reads retry-after-ms, else Retry-After as seconds or as a date.
    """
    exact, plain = headers.get("retry-after-ms"), headers.get("retry-after")
    if (seconds := _seconds(exact)) is not None:
        return seconds / 1000
    if plain is None or (seconds := _seconds(plain)) is not None:
        return seconds if plain is not None else None
    try:
        at = email.utils.parsedate_to_datetime(plain).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(0.0, at - time.time()), MAX_RETRY_AFTER_S)


def _seconds(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return min(seconds, MAX_RETRY_AFTER_S) if math.isfinite(seconds) and seconds >= 0 else None


def _short(error: BaseException, settings: LlmSettings) -> str:
    message = _message_in(getattr(error, "body", None)) or getattr(error, "message", "") or error
    text = " ".join(str(message).split())
    if settings.api_key:
        text = text.replace(settings.api_key, "***")
    return text[:300]


def _message_in(body: object) -> str:
    """Return the message in an error response's body, or "".

    The message of the library's exception is unsuitable: it is the repr of the whole body.
    """
    error = body.get("error", body) if isinstance(body, Mapping) else body
    message = error.get("message") if isinstance(error, Mapping) else error
    return message if isinstance(message, str) else ""
