"""Tools over REST: what there is, and one call of one (runners.md, "Tools")."""

from __future__ import annotations

import asyncio
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework.request import Request

from decisions.api.arguments import RequestArguments
from decisions.api.openapi import PROBLEM, component, operation
from decisions.api.view import ApiView, json_response, principal_of
from decisions.errors import Refused
from decisions.infra.threads import in_thread
from decisions.validation.json_input import CALL_LIMIT
from runners.invocation.workspace_errors import CODES, as_workspace_error
from runners.tools.registry import is_workspace_tool
from runs.direct_calls import contract
from runs.direct_calls.calls import call_tool
from runs.direct_calls.catalogue import list_callable_tools
from runs.direct_calls.refusals import record_refusal
from runs.direct_calls.request import DirectCallRequest

_NOTHING = RequestArguments({"type": "object", "properties": {}, "additionalProperties": False})
_CALL = RequestArguments(contract.CALL_INPUT)
_TOOLS = component("ToolList", contract.TOOLS_OUTPUT)
_ANSWER = component("CalledTool", contract.CALL_OUTPUT)
_BODY = component("ToolCall", contract.CALL_BODY)
_WORKSPACE = component("WorkspaceProblem", contract.S4_PROBLEM)
_PROBLEM = component(
    "ToolProblem",
    {
        "description": "An error of a workspace tool, or that of any other, or of an unknown one.",
        "oneOf": [PROBLEM, _WORKSPACE],
    },
)
# What a status stands for, and an example of either shape where there is one.
_REFUSALS: dict[int, tuple[str, str | None, str]] = {
    400: ("E_BAD_ARGS", "INVALID_PARAMETER", "The call is not as the schema says."),
    401: ("E_POLICY_VIOLATION", "UNAUTHENTICATED", "No valid token came."),
    403: ("E_DENY_PATH", "FORBIDDEN", "The token lacks the scope, or policy does not allow it."),
    404: ("E_NOT_FOUND", "TOOL_NOT_FOUND", "No such tool, file, folder, snapshot or target."),
    409: ("E_CONFLICT", "CONFLICT", "The file changed, or the key was used for another call."),
    410: ("E_NOT_FOUND", "ARTIFACT_EXPIRED", "Done before; its output is not kept any more."),
    413: ("E_TOO_LARGE", "INVALID_PARAMETER", "The body or the file is too large."),
    415: ("E_BAD_ARGS", "INVALID_PARAMETER", "The body is no plain application/json."),
    422: ("E_ENCODING", "ELEMENT_NOT_FOUND", "The tool cannot do it with what it found."),
    429: ("E_POLICY_VIOLATION", "TOO_MANY_REQUESTS", "Too many calls in this second."),
    500: ("E_IO", "EXECUTION_ERROR", "A defect of ours, or the disk."),
    501: ("E_UNSUPPORTED", "CHROMIUM_MISSING", "This installation cannot do it."),
    502: ("E_PREVIEW_FAIL", None, "The preview server does not answer, or not as it should."),
    504: ("E_TIMEOUT", "NAVIGATION_TIMEOUT", "It did not end in time."),
}


def _refusal(status: int) -> OpenApiResponse:
    of_workspace, of_others, told = _REFUSALS[status]
    may_succeed = CODES[of_workspace].recoverable
    error = {"code": of_workspace, "message": told, "recoverable": may_succeed}
    shown: dict[str, Any] = {"A workspace tool": {"error": error}}
    if of_others is not None:
        kept = {"message": told, "details": {}, "retryable": status == 429, "recovery": "…"}
        shown = {"Example": {"errorCode": of_others, **kept}} | shown
    examples = [OpenApiExample(name, one, response_only=True) for name, one in shown.items()]
    return OpenApiResponse(_PROBLEM, told, examples=examples)


class ToolsView(ApiView):
    """GET /tools."""

    scopes = {"GET": "tools:read"}

    @operation(
        "listTools",
        "What can be called",
        tag="tools",
        response=_TOOLS,
        refusals=(400, 401, 403, 429),
    )
    def get(self, request: Request) -> HttpResponse:
        """Every tool, with its schemas, what it does to the world, and the targets it may work
        on: ours first, then those that runners offer (kind `docker-runner`), as their runners
        published them when they were probed, as their targets' config names them, or as rules of
        policy name them.
        """
        self.arguments(_NOTHING)
        return json_response(list_callable_tools(principal=principal_of(request)))


class CallView(ApiView):
    """POST /tools/{name}/call."""

    scopes = {"POST": "tools:read"}  # the call itself asks for tools:write where it changes things
    audited_path = {"name": "tool"}
    body_limit = CALL_LIMIT

    async def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]
        """Answer as ever; errors of workspace tools are told in S4's words."""
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
        """Checks the arguments, asks policy, and answers with what the tool answered.

        Answers 202 where a person has to confirm the call first; the error's details name the
        decision, and the same call with the same `idempotencyKey` then performs it. Errors of
        workspace tools are `{"error": {"code": "E_…", …}}`, all others as everywhere.
        """
        asked = await self._asked(request)
        call = DirectCallRequest(
            asked["name"],
            asked.get("args", {}),
            target_id=asked.get("targetId"),
            timeout_ms=asked.get("timeoutMs"),
            key=asked.get("idempotencyKey", ""),
        )
        return json_response(
            (await call_tool(principal=principal_of(request), request=call)).as_dict()
        )

    async def _asked(self, request: Request) -> dict[str, Any]:
        try:
            return await self.arguments_of_body(_CALL)
        except Refused as refusal:
            principal, name = principal_of(request), str(self.kwargs["name"])
            await in_thread(record_refusal, principal=principal, name=name, refusal=refusal)
            raise
