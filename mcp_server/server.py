"""The MCP server itself: it lists tools and resources, answers calls, and lets errors out in our
own shape only.

It serves both protocol eras of the SDK and knows no transport; a Transport tells who calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError

from decisions.audit.record import is_access_refusal
from decisions.errors import Refused, ToolNotFound
from decisions.infra.threads import in_thread
from decisions.infra.trace_context import use_traceparent
from decisions.validation.json_schema import check, coerce_integers
from mcp_server.protocol import resources
from mcp_server.protocol.progress import ProgressReporter
from mcp_server.protocol.request_context import MessageContext, context_of, traceparent_of
from mcp_server.protocol.results import (
    malfunction,
    refusal,
    resource_error,
    resource_malfunction,
    success,
)
from mcp_server.protocol.transport import Transport
from mcp_server.tools.list_changes import CallerTools, ToolListWatch
from mcp_server.tools.registry import McpTool, McpToolCall, load_caller_tools, load_toolsets
from runners.product import NAME, VERSION
from runs.direct_calls.refusals import record_refusal

CONTRACT = {"continuity": {"continuity_mcp_version": "1.1.0"}}
_RUNTIME = (
    "Continuity does work that must not get lost, such as reading many web pages in a real browser."
    " Pick a template with list_task_templates, start it with run_task_template, keep the runId: it"
    " stays good when you, this server or a worker are restarted (list_task_runs finds it again)."
    " For long work use options.mode async and wait_task_run. Large results are artifacts: read"
    " of them what you need with read_page_content, or all with get_artifact, chunk by chunk. A run"
    " that failed is an answer, not a tool error: its error.recovery says what to do."
)
_CONTINUITY = (
    "Before you act for a user, tell continuity_chat what they asked for. It may ask questions"
    " back; where trace.high_risk_confirmation.required is true, show the user the risk and go on"
    " only once they confirmed (continuity_confirm_decision). Show trace.reality_first.question as"
    " it is, once, and argue with nobody. Afterwards call continuity_report_outcome."
)
_WORKSPACE = (
    "Paths of workspace tools are relative to the project's folder (get_runtime_info tells it and"
    " what is allowed). Write in two calls: write_to_file with dryRun true shows the diff, the same"
    " with dryRun false writes it; E_CONFLICT means that the file changed meanwhile: read it again."
)
_TARGETS = (
    "Tools whose _meta names continuity.targets are performed by runners on other machines; policy"
    " and, where it says so, a person decide about each call first."
)
INSTRUCTIONS = {
    "runtime": _RUNTIME,
    "continuity": _CONTINUITY,
    "workspace": _WORKSPACE,
    "targets": _TARGETS,
}  # by toolset, for a model


class InvalidToolOutput(Exception):
    """An answer of ours does not keep to the schema that we advertise."""


class ContinuityServer(Server[ToolListWatch]):
    """The SDK's server with our name, our tools and the version of our contract."""

    def __init__(self, toolsets: Sequence[str], transport: Transport) -> None:
        super().__init__(
            NAME,
            version=VERSION,
            title="Continuity",
            instructions=" ".join(
                INSTRUCTIONS[name] for name in dict.fromkeys(toolsets) if name in INSTRUCTIONS
            ),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_resource_templates,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=self._listen if "targets" in toolsets else None,
            lifespan=ToolListWatch.of_stream,
        )
        self._toolsets = toolsets
        self._transport = transport

    @cached_property
    def tools(self) -> dict[str, McpTool]:
        """The tools by name; loaded at the first look, which is after the handshake."""
        return load_toolsets(self._toolsets)

    @cached_property
    def _offers(self) -> CallerTools:
        return CallerTools(load_caller_tools(self._toolsets), self._transport, self.tools)

    def stream_options(self) -> InitializationOptions:
        """Return the options of a stream that stays open: on it a client is told when its list of
        tools is another one.
        """
        changes = NotificationOptions(tools_changed="targets" in self._toolsets)
        return self.create_initialization_options(changes)

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        """Return the SDK's capabilities and our contract's version, in every era and transport."""
        told = super().get_capabilities(
            notification_options,
            CONTRACT | (experimental_capabilities or {}),
            extensions,
            protocol_version=protocol_version,
        )
        if told.resources is not None:  # what is listened for is the list of tools alone
            told.resources.list_changed = told.resources.subscribe = False
        return told

    @cached_property
    def _listed(self) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_listed(tool) for tool in self.tools.values()])

    async def _list_tools(
        self, ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        context = context_of(ctx.request)
        offered = await self._offers.listed(context)
        self._offers.watch(ctx, offered)
        if not offered:
            return self._listed
        return types.ListToolsResult(tools=[*self._listed.tools, *map(_listed, offered)])

    async def _listen(
        self, ctx: ServerRequestContext[Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        return await self._offers.listen(ctx, params)

    async def _call_tool(
        self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        context = context_of(ctx.request)
        try:
            tool = self.tools.get(params.name) or (await self._offers.of(context)).get(params.name)
        except Refused as refused:
            return refusal(refused)
        if tool is None:
            told = f"Unknown tool: {params.name[:64]}"
            await self._record_refusal(params.name, ToolNotFound(told), context)
            raise MCPError(types.INVALID_PARAMS, told)
        reporter = ProgressReporter(ctx.session)
        try:
            if context.refused is not None:
                if tool.audits_refusals:
                    await self._record_refusal(tool.name, context.refused, context)
                raise context.refused
            with use_traceparent(traceparent_of(ctx.meta, ctx.request)):
                answer = await self._answer(tool, params.arguments or {}, context, reporter)
            return success(answer)
        except Refused as refused:
            if not tool.audits_refusals and is_access_refusal(refused, reads=tool.read_only):
                await self._record_refusal(tool.name, refused, context)
            return refusal(refused, tell=tool.refusal_as_dict)
        except Exception as error:  # noqa: BLE001  (the door's one place: log, answer, live on)
            return malfunction(tool.name, error, tell=tool.refusal_as_dict)
        finally:
            reporter.close()

    async def _record_refusal(self, name: str, refusal: Refused, context: MessageContext) -> None:
        """Tell the audit log of a refused call; whoever cannot be admitted is not told of."""
        if refusal.is_recorded:
            return
        with suppress(Refused):
            principal = await self._transport.authenticate(context, needs_stack=False)
            await in_thread(record_refusal, principal=principal, name=name, refusal=refusal)

    async def _list_resources(
        self, ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        listed = await self._ask(ctx, resources.list_recent)
        return types.ListResourcesResult(resources=listed)

    async def _list_resource_templates(
        self, ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=list(resources.TEMPLATES))

    async def _read_resource(
        self, ctx: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        contents = await self._ask(ctx, resources.read, uri=str(params.uri))
        return types.ReadResourceResult(contents=contents)

    async def _ask(
        self, ctx: ServerRequestContext[Any], selector: Callable[..., Any], **asked: Any
    ) -> Any:
        """Return what a selector of resources answers; its refusals become protocol errors."""
        context = context_of(ctx.request)
        try:
            principal = await self._transport.authenticate(context, needs_stack=False)
            return await in_thread(selector, principal=principal, **asked)
        except Refused as refused:
            if is_access_refusal(refused, reads=True):
                await self._record_refusal(ctx.method, refused, context)
            raise resource_error(refused, ctx.protocol_version) from None
        except Exception as error:  # noqa: BLE001  (as above: log, answer, live on)
            raise resource_malfunction(error) from None

    async def _answer(
        self,
        tool: McpTool,
        arguments: dict[str, Any],
        context: MessageContext,
        reporter: ProgressReporter,
    ) -> dict[str, Any]:
        began = time.monotonic()
        if not tool.validates_arguments:
            check(tool.accepts, arguments)
            arguments = coerce_integers(arguments, tool.input_schema)
        principal = await self._transport.authenticate(context, needs_stack=tool.needs_stack)
        call = McpToolCall(
            principal, arguments, reporter, time.monotonic() - began, tuple(self.tools)
        )
        answer = await tool.handler(call)
        if not tool.answers.is_valid(answer):
            wrong = next(tool.answers.iter_errors(answer))
            raise InvalidToolOutput(f"{list(wrong.instance_path)}: {wrong.message[:300]}")
        return answer


def _listed(tool: McpTool) -> types.McpTool:
    return types.McpTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=tool.open_world,
        ),
        _meta=dict(tool.meta) if tool.meta is not None else None,
    )
