"""The OpenAPI description of REST calls: named schemas, parameters, responses, errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema

from decisions.rest_base.arguments import RequestArguments

Schema = Mapping[str, Any]
# Query parameters whose schemas, which MCP has too, say nothing more.
_COMMON = {
    "limit": "The most rows that the answer has.",
    "offset": "nextCursor of the page before; 0 for the first.",
    "status": "Only rows with this status.",
    "kind": "Only rows of this kind.",
    "type": "Only rows of this type.",
}
F = TypeVar("F", bound=Callable[..., Any])
_components: dict[str, Schema] = {}


def component(name: str, schema: Schema) -> dict[str, str]:
    """Register a schema under a name in the document and return the reference to it."""
    _components[name] = schema
    return {"$ref": f"#/components/schemas/{name}"}


def components() -> dict[str, Schema]:
    """Return every registered schema by name."""
    return dict(sorted(_components.items()))


PROBLEM = component(
    "Problem",
    {
        "type": "object",
        "description": "The shape of every error.",
        "required": ["errorCode", "message", "details", "retryable", "recovery"],
        "properties": {
            "errorCode": {"type": "string", "examples": ["INVALID_PARAMETER"]},
            "message": {"type": "string"},
            "details": {"type": "object"},
            "retryable": {"type": "boolean", "description": "The same call may succeed later."},
            "recovery": {"type": "string", "description": "What the caller can do."},
            "nextActions": {
                "type": "array",
                "description": "Calls that help, as MCP tool calls; present for many errors.",
                "items": {
                    "type": "object",
                    "required": ["tool", "args", "reason"],
                    "properties": {
                        "tool": {"type": "string"},
                        "args": {"type": "object"},
                        "reason": {"type": "string"},
                    },
                },
            },
        },
    },
)
_REFUSALS = {
    400: (
        "INVALID_PARAMETER",
        "The arguments do not match the schema, or the requested operation is not allowed.",
    ),
    401: ("UNAUTHENTICATED", "The request has no valid token."),
    403: ("FORBIDDEN", "The token lacks the scope."),
    404: ("RUN_NOT_FOUND", "Unknown, expired, or another workspace's."),
    409: ("CONFLICT", "Not in the state that the call needs."),
    410: ("ARTIFACT_EXPIRED", "The time to live is over."),
    413: ("INVALID_PARAMETER", "The body is too large."),
    415: ("INVALID_PARAMETER", "The body is not plain application/json."),
    429: ("TOO_MANY_REQUESTS", "Too many calls in this second."),
}
# What a call that reads an object may refuse with, and one that changes it with a body.
READ_REFUSALS = (400, 401, 403, 404, 429)
WRITE_REFUSALS = (*READ_REFUSALS, 413, 415)


def _refusal(status: int) -> OpenApiResponse:
    code, message = _REFUSALS[status]
    body = {"errorCode": code, "message": message, "details": {}, "retryable": status == 429}
    example = OpenApiExample("Example", {**body, "recovery": "…"}, response_only=True)
    return OpenApiResponse(PROBLEM, message, examples=[example])


def operation(
    operation_id: str,
    summary: str,
    *,
    tag: str,
    response: Schema | None,
    status: int = 200,
    arguments: RequestArguments | None = None,
    path: Mapping[str, str] | None = None,
    body: Schema | None = None,
    body_example: Any = None,
    examples: Mapping[int, Any] | None = None,
    others: Mapping[int, Schema | str] | None = None,
    refusals: tuple[int, ...] = (),
    media_types: tuple[str, ...] = ("application/json",),
    refusal_response: Callable[[int], OpenApiResponse] = _refusal,
) -> Callable[[F], F]:
    """Return a decorator that describes a view's handler in the document.

    The handler's docstring is the description.

    Args:
        response: the schema of the response with `status`; with None and `others` there is none.
        others: schemas of further statuses; a text for a response without a body.
        path: path parameter -> description.
        arguments: those that are not in `path` are query parameters.
        refusals: the error statuses, each described by `refusal_response`.
    """
    responses: dict[Any, Any] = {}
    first = {} if response is None and others else {status: response}
    for code, schema in {**first, **(others or {})}.items():
        media = media_types if code == status else media_types[:1]
        for media_type in media:
            responses[code, media_type] = _response(schema, (examples or {}).get(code))
    for code in sorted(refusals):
        responses[code, "application/json"] = refusal_response(code)
    body_examples = (
        [OpenApiExample("Example", body_example, request_only=True)] if body_example else []
    )
    describe: Callable[[F], F] = extend_schema(
        operation_id=operation_id,
        summary=summary,
        tags=[tag],
        parameters=_parameters(arguments, path or {}),
        request={"application/json": dict(body)} if body else None,
        responses=responses,
        examples=body_examples,
    )
    return describe


def _response(schema: Schema | str | None, example: Any) -> OpenApiResponse:
    if not isinstance(schema, Mapping):
        return OpenApiResponse(description=schema or "")
    examples = [OpenApiExample("Example", example, response_only=True)] if example else []
    return OpenApiResponse(dict(schema), examples=examples)


def _parameters(
    arguments: RequestArguments | None, path: Mapping[str, str]
) -> list[OpenApiParameter]:
    parameters = [
        OpenApiParameter(
            name,
            {"type": "string", "minLength": 1, "maxLength": 64},
            OpenApiParameter.PATH,
            required=True,
            description=description,
        )
        for name, description in path.items()
    ]
    if arguments is None:
        return parameters
    for name, schema in arguments.schema["properties"].items():
        if name not in path:
            bare = {key: value for key, value in schema.items() if key != "description"}
            parameters.append(
                OpenApiParameter(
                    name,
                    bare,
                    OpenApiParameter.QUERY,
                    description=schema.get("description") or _COMMON.get(name, ""),
                )
            )
    return parameters


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The security scheme of TokenAuthentication."""

    target_class = "decisions.rest_base.drf.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the OpenAPI security scheme."""
        description = "Created with `manage.py create_token NAME`."
        return {"type": "http", "scheme": "bearer", "description": description}
