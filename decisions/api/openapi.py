"""What the OpenAPI document says of calls: named schemas, parameters, answers, refusals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema

from decisions.api.arguments import RequestArguments

Schema = Mapping[str, Any]
F = TypeVar("F", bound=Callable[..., Any])
_components: dict[str, Schema] = {}


def component(name: str, schema: Schema) -> dict[str, str]:
    """Give a schema its name in the document and return the reference to it."""
    _components[name] = schema
    return {"$ref": f"#/components/schemas/{name}"}


def components() -> dict[str, Schema]:
    """Return every schema that has a name."""
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
                "description": "Calls that help, by the names of their MCP tools; often there.",
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
        "The arguments are not as the schema says, or what they ask is refused.",
    ),
    401: ("UNAUTHENTICATED", "No valid token came."),
    403: ("FORBIDDEN", "The token lacks the scope."),
    404: ("RUN_NOT_FOUND", "Unknown, past its time, or another workspace's."),
    409: ("CONFLICT", "Not in the state that the call needs."),
    410: ("ARTIFACT_EXPIRED", "Its time to live is over."),
    413: ("INVALID_PARAMETER", "The body is too large."),
    415: ("INVALID_PARAMETER", "The body is no plain application/json."),
    429: ("TOO_MANY_REQUESTS", "Too many calls in this second."),
}


def _refusal(status: int) -> OpenApiResponse:
    code, told = _REFUSALS[status]
    shown = {"errorCode": code, "message": told, "details": {}, "retryable": status == 429}
    example = OpenApiExample("Example", {**shown, "recovery": "…"}, response_only=True)
    return OpenApiResponse(PROBLEM, told, examples=[example])


def operation(
    operation_id: str,
    summary: str,
    *,
    tag: str,
    answer: Schema | None,
    status: int = 200,
    arguments: RequestArguments | None = None,
    path: Mapping[str, str] | None = None,
    body: Schema | None = None,
    body_example: Any = None,
    examples: Mapping[int, Any] | None = None,
    others: Mapping[int, Schema | str] | None = None,
    refusals: tuple[int, ...] = (),
    media_types: tuple[str, ...] = ("application/json",),
    tell_refusal: Callable[[int], OpenApiResponse] = _refusal,
) -> Callable[[F], F]:
    """Describe a handler: its docstring is the description.

    `answer` is the schema of `status`, `others` those of further statuses (a text where there is no
    body to describe); with others and no answer there is no `status`. `path` names what stands in
    the path; what is left of `arguments` is the query.
    """
    answers: dict[Any, Any] = {}
    first = {} if answer is None and others else {status: answer}
    for code, schema in {**first, **(others or {})}.items():
        media = media_types if code == status else media_types[:1]
        for media_type in media:
            answers[code, media_type] = _answer(schema, (examples or {}).get(code))
    for code in sorted(refusals):
        answers[code, "application/json"] = tell_refusal(code)
    shown = [OpenApiExample("Example", body_example, request_only=True)] if body_example else []
    describe: Callable[[F], F] = extend_schema(
        operation_id=operation_id,
        summary=summary,
        tags=[tag],
        parameters=_parameters(arguments, path or {}),
        request={"application/json": dict(body)} if body else None,
        responses=answers,
        examples=shown,
    )
    return describe


def _answer(schema: Schema | str | None, example: Any) -> OpenApiResponse:
    if not isinstance(schema, Mapping):
        return OpenApiResponse(description=schema or "")
    examples = [OpenApiExample("Example", example, response_only=True)] if example else []
    return OpenApiResponse(dict(schema), examples=examples)


def _parameters(
    arguments: RequestArguments | None, path: Mapping[str, str]
) -> list[OpenApiParameter]:
    named = [
        OpenApiParameter(
            name,
            {"type": "string", "minLength": 1, "maxLength": 64},
            OpenApiParameter.PATH,
            required=True,
            description=told,
        )
        for name, told in path.items()
    ]
    if arguments is None:
        return named
    for name, schema in arguments.schema["properties"].items():
        if name not in path:
            shown = {key: value for key, value in schema.items() if key != "description"}
            told = schema.get("description", "")
            named.append(OpenApiParameter(name, shown, OpenApiParameter.QUERY, description=told))
    return named


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The security scheme of TokenAuthentication."""

    target_class = "decisions.api.drf.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme."""
        made = "Made with `manage.py create_token NAME`."
        return {"type": "http", "scheme": "bearer", "description": made}
