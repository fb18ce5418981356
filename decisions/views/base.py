"""A call of the Continuity API over REST: refused in S2's shape, and described so."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiExample, OpenApiResponse

from decisions.api.openapi import component, operation
from decisions.api.view import ApiView
from decisions.continuity.errors import VALIDATION_ERROR, as_continuity_error
from decisions.errors import Refused

PROBLEM = component(
    "ContinuityProblem",
    {
        "type": "object",
        "description": "The shape of every error of the Continuity API.",
        "required": ["code", "detail"],
        "properties": {
            "code": {"type": "string", "examples": [VALIDATION_ERROR]},
            "detail": {"type": "string"},
        },
    },
)
_REFUSALS = {
    400: (VALIDATION_ERROR, "The arguments are not as the schema says."),
    401: ("unauthenticated", "No valid token came."),
    403: ("forbidden_user", "The token lacks the scope, or may not act for this user."),
    404: ("not_found", "Unknown, or another's."),
    409: ("idempotency_conflict", "The key was used for another body."),
    412: ("version_conflict", "It was changed since it was read."),
    413: (VALIDATION_ERROR, "The body is too large."),
    415: (VALIDATION_ERROR, "The body is no plain application/json."),
    429: ("too_many_requests", "Too many calls in this second."),
}


class ContinuityView(ApiView):
    """A call of the Continuity API."""

    refusal_as_dict: ClassVar[Callable[[Refused], dict[str, Any]]] = staticmethod(
        as_continuity_error
    )


def _refusal(status: int) -> OpenApiResponse:
    code, told = _REFUSALS[status]
    shown = {"code": code, "detail": told}
    example = OpenApiExample("Example", shown, response_only=True)
    return OpenApiResponse(PROBLEM, told, examples=[example])


continuity_operation = partial(operation, tag="continuity", refusal_response=_refusal)
