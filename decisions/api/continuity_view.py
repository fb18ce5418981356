"""Base of the Continuity API's REST views: S2's error body and its OpenAPI description."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiExample, OpenApiResponse

from decisions.api.schemas.continuity import VALIDATION_ERROR, as_continuity_error
from decisions.foundation.errors import Refused
from decisions.rest_base.openapi import component, operation
from decisions.rest_base.view import ApiView

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
    400: (VALIDATION_ERROR, "The arguments do not match the schema."),
    401: ("unauthenticated", "The request has no valid token."),
    403: ("forbidden_user", "The token lacks the scope, or may not act for this user."),
    404: ("not_found", "Unknown, or another user's."),
    409: ("idempotency_conflict", "The key was used for another body."),
    412: ("version_conflict", "The object was changed since it was read."),
    413: (VALIDATION_ERROR, "The body is too large."),
    415: (VALIDATION_ERROR, "The body is not plain application/json."),
    429: ("too_many_requests", "Too many calls in this second."),
}


class ContinuityView(ApiView):
    """A REST call of the Continuity API."""

    refusal_as_dict: ClassVar[Callable[[Refused], dict[str, Any]]] = staticmethod(
        as_continuity_error
    )


def _refusal(status: int) -> OpenApiResponse:
    code, detail = _REFUSALS[status]
    example = OpenApiExample("Example", {"code": code, "detail": detail}, response_only=True)
    return OpenApiResponse(PROBLEM, detail, examples=[example])


continuity_operation = partial(operation, tag="continuity", refusal_response=_refusal)
