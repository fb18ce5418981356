"""Tools over REST: list them, and call one."""

from __future__ import annotations

import asyncio
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework.request import Request

from decisions.foundation.errors import Refused
from decisions.foundation.infra.threads import in_thread
from decisions.foundation.validation.json_input import CALL_LIMIT
from decisions.foundation.validation.json_schema import closed
from decisions.rest_base.arguments import RequestArguments
from decisions.rest_base.openapi import PROBLEM, component, operation
from decisions.rest_base.view import ApiView, json_response, principal_of
from runners.invocation.workspace_errors import CODES, as_workspace_error
from runners.tools.registry import is_workspace_tool
from runs.api.schemas import tools as schemas
from runs.calls.direct.call import call_tool
from runs.calls.direct.catalogue import list_callable_tools
from runs.calls.direct.refusals import record_refusal
from runs.calls.request import DirectCallRequest

_NOTHING = RequestArguments(closed({}))
_CALL = RequestArguments(schemas.CALL_INPUT)
_TOOLS = component("ToolList", schemas.TOOLS_OUTPUT)
_ANSWER = component("CalledTool", schemas.CALL_OUTPUT)
_BODY = component("ToolCall", schemas.CALL_BODY)
_WORKSPACE = component("WorkspaceProblem", schemas.S4_PROBLEM)
_PROBLEM = component(
    "ToolProblem",
    {
        "description": "The error of a workspace tool, or of any other or unknown tool.",
        "oneOf": [PROBLEM, _WORKSPACE],
    },
)
# By HTTP status: an error code of workspace tools, one of other tools, and a message.
_REFUSALS: dict[int, tuple[str, str | None, str]] = {
    400: ("E_BAD_ARGS", "INVALID_PARAMETER", "The call does not fit the schema."),
    401: ("E_POLICY_VIOLATION", "UNAUTHENTICATED", "There is no valid token."),
    403: ("E_DENY_PATH", "FORBIDDEN", "The token lacks the scope, or policy does not allow it."),
    404: ("E_NOT_FOUND", "TOOL_NOT_FOUND", "No such tool, file, folder, snapshot or target."),
    409: ("E_CONFLICT", "CONFLICT", "The file changed, or the key was used for another call."),
    410: ("E_NOT_FOUND", "ARTIFACT_EXPIRED", "The call was made before; its output was deleted."),
    413: ("E_TOO_LARGE", "INVALID_PARAMETER", "The body or the file is too large."),
    415: ("E_BAD_ARGS", "INVALID_PARAMETER", "The body is not application/json."),
    422: ("E_ENCODING", "ELEMENT_NOT_FOUND", "The tool cannot work with what it found."),
    429: ("E_POLICY_VIOLATION", "TOO_MANY_REQUESTS", "Too many calls in this second."),
    500: ("E_IO", "EXECUTION_ERROR", "An internal error, or the disk failed."),
    501: ("E_UNSUPPORTED", "CHROMIUM_MISSING", "This installation does not support the call."),
    502: ("E_PREVIEW_FAIL", None, "The preview server does not respond, or not correctly."),
    504: ("E_TIMEOUT", "NAVIGATION_TIMEOUT", "The call did not end in time."),
}


def _refusal(status: int) -> OpenApiResponse:
    workspace_code, other_code, message = _REFUSALS[status]
    recoverable = CODES[workspace_code].recoverable
    error = {"code": workspace_code, "message": message, "recoverable": recoverable}
    bodies: dict[str, Any] = {"A workspace tool": {"error": error}}
    if other_code is not None:
        fields = {"message": message, "details": {}, "retryable": status == 429, "recovery": "…"}
        bodies = {"Example": {"errorCode": other_code, **fields}} | bodies
    examples = [OpenApiExample(name, body, response_only=True) for name, body in bodies.items()]
    return OpenApiResponse(_PROBLEM, message, examples=examples)


class ToolsView(ApiView):
    """GET /tools."""

    scopes = {"GET": "tools:read"}

    @operation(
        "listTools",
        "Tools that can be called",
        tag="tools",
        response=_TOOLS,
        refusals=(400, 401, 403, 429),
    )
    def get(self, request: Request) -> HttpResponse:
        """Every tool with its schemas, its effect, and the targets on which it may run. Local tools
        come first, then those of runners (kind `docker-runner`): as the runner published them when
        it was probed, or as its target's config or a policy rule names them.
        """
        self.arguments(_NOTHING)
        return json_response(list_callable_tools(principal=principal_of(request)))


class CallView(ApiView):
    """POST /tools/{name}/call."""

    scopes = {"POST": "tools:read"}  # the service requires tools:write for tools with an effect
    audited_path = {"name": "tool"}
    body_limit = CALL_LIMIT

    async def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]
        """Dispatch as usual; errors of workspace tools get S4's shape."""
        if await asyncio.to_thread(is_workspace_tool, str(kwargs.get("name", ""))):
            self.__dict__["refusal_as_dict"] = as_workspace_error
        return await super().dispatch(request, *args, **kwargs)

    @operation(
        "callTool",
        "Call a tool",
        tag="tools",
        response=_ANSWER,
        body=_BODY,
        others={202: _PROBLEM},
        path={"name": "From the list of tools."},
        body_example={"args": {"path": "game/scene"}},
        refusals=tuple(_REFUSALS),
        refusal_response=_refusal,
    )
    async def post(self, request: Request, **path: str) -> HttpResponse:
        """Validates the arguments, evaluates policy, calls the tool and returns its output.

        Responds 202 if a person has to confirm the call first; the error's details name the
        decision, and the same call with the same `idempotencyKey` then performs it. Errors of
        workspace tools are `{"error": {"code": "E_…", …}}`, others have the API's usual shape.
        """
        args = await self._parse_arguments(request)
        call = DirectCallRequest(
            args["name"],
            args.get("args", {}),
            target_id=args.get("targetId"),
            timeout_ms=args.get("timeoutMs"),
            key=args.get("idempotencyKey", ""),
        )
        return json_response(
            (await call_tool(principal=principal_of(request), request=call)).as_dict()
        )

    async def _parse_arguments(self, request: Request) -> dict[str, Any]:
        try:
            return await self.arguments_of_body(_CALL)
        except Refused as refusal:
            principal, name = principal_of(request), str(self.kwargs["name"])
            await in_thread(record_refusal, principal=principal, name=name, refusal=refusal)
            raise
