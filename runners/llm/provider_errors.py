"""What an error of a provider's library amounts to: ask again, wait, or give up; told without the
key and without the library's own words where these repeat it.
"""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Mapping

import httpx2

from runners.errors import ModelRefused, ModelUnavailable, ToolFailed
from runners.llm.base import LlmSettings
from runners.llm.stream_events import ServerBusy, StreamCut

_WAIT = frozenset({408, 409, 425, 429})
LONGEST_ASKED_S = 30 * 86_400.0  # a server that asks for longer is told as asking for this


def classify_error(
    error: Exception, settings: LlmSettings, *, has_begun: bool = True
) -> StreamCut | ServerBusy | ToolFailed:
    """Return what the gateway has to do about an error, after the answer's head or before."""
    if isinstance(error, StreamCut):
        return error
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status >= 400:
        return _of_status(status, error, settings)
    cause = error if isinstance(error, httpx2.HTTPError) else error.__cause__
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.UnsupportedProtocol):
        return ModelUnavailable(
            f"The model's server at {settings.location} cannot be reached: {_short(cause, settings)}.",
            details={"model": settings.model},
        )
    if not has_begun:
        # A kept connection, mostly, that the server closed as it was used: no stream was cut.
        told = f"the connection was lost before an answer came: {_short(error, settings)}"
        return ServerBusy(told, status=None, after_s=None)
    return StreamCut(f"{type(error).__name__}: {_short(error, settings)}")


def _of_status(status: int, error: Exception, settings: LlmSettings) -> ServerBusy | ToolFailed:
    details = {"model": settings.model, "status": status}
    if status in (401, 403):  # the server's words may repeat the key
        told = "CONTINUITY_LLM_API_KEY" + ("" if settings.api_key else ", which is not set")
        return ModelUnavailable(
            f"The model's server at {settings.location} refuses the key ({status}): see {told}.",
            details=details,
        )
    if status == 404:
        return ModelUnavailable(
            f"The model's server at {settings.location} knows no model {settings.model!r}, or has"
            f" another address (404): {_short(error, settings)}",
            details=details,
        )
    if status in _WAIT or status >= 500:
        headers = getattr(getattr(error, "response", None), "headers", {})
        return ServerBusy(
            f"the server answered {status}: {_short(error, settings)}",
            status=status,
            after_s=retry_after(headers),
        )
    return ModelRefused(
        f"The model's server does not take the request ({status}): {_short(error, settings)}",
        details=details,
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that an answer asks to wait, where it says so: Retry-After as seconds or a
    date, or the finer retry-after-ms.
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
    return min(max(0.0, at - time.time()), LONGEST_ASKED_S)


def _seconds(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return min(seconds, LONGEST_ASKED_S) if math.isfinite(seconds) and seconds >= 0 else None


def _short(error: BaseException, settings: LlmSettings) -> str:
    said = _said_by_server(getattr(error, "body", None)) or getattr(error, "message", "") or error
    text = " ".join(str(said).split())
    if settings.api_key:
        text = text.replace(settings.api_key, "***")
    return text[:300]


def _said_by_server(body: object) -> str:
    """Return the sentence in an error's body, where it has one: the libraries' own message is the
    whole body as Python writes it.
    """
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    said = inner.get("message") if isinstance(inner, Mapping) else inner
    return said if isinstance(said, str) else ""
