"""The error body of the Continuity API (S2)."""

from __future__ import annotations

from decisions.errors import InvalidInput, Refused

VALIDATION_ERROR = "validation_error"


def as_continuity_error(refusal: Refused) -> dict[str, str]:
    """Return a refusal as {code, detail}; codes that S2 does not define are ours in lower case."""
    code = VALIDATION_ERROR if refusal.code == InvalidInput.code else refusal.code.lower()
    return {"code": code, "detail": refusal.message}
