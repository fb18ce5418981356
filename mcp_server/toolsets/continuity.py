"""The toolset `continuity`: the calls of the Continuity API (S2 §1, §2).

Each tool calls the same service as REST and returns its result unchanged; the rules are in the
services.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from decisions.api.schemas import continuity as schemas
from decisions.api.schemas.chat import CHAT_INPUT, CHAT_OUTPUT
from decisions.api.schemas.continuity import as_continuity_error
from decisions.authorization.confirm_by_token import confirm_decision
from decisions.chat.services import chat
from decisions.foundation.infra.threads import in_thread
from decisions.memory.objects import list_objects, put_shell, put_success_path
from decisions.memory.outcomes import report_outcome
from decisions.memory.state import get_state
from mcp_server.tools.registry import McpTool, McpToolCall

Service = Callable[..., dict[str, Any]]
_OBJECT_TYPE = {"type": "object_type"}


async def _chat(call: McpToolCall) -> dict[str, Any]:
    return await chat(principal=call.principal, call=call.arguments)


async def _state(call: McpToolCall) -> dict[str, Any]:
    return await in_thread(get_state, principal=call.principal, user_id=call.arguments["user_id"])


async def _objects(call: McpToolCall) -> dict[str, Any]:
    filters = {_OBJECT_TYPE.get(name, name): value for name, value in call.arguments.items()}
    return await in_thread(list_objects, principal=call.principal, **filters)


async def _call_service(service: Service, call: McpToolCall) -> dict[str, Any]:
    return await in_thread(service, principal=call.principal, call=call.arguments)


_tool = partial(McpTool, refusal_as_dict=as_continuity_error)

TOOLS = (
    _tool(
        name="continuity_chat",
        title="Submit a user's request",
        description=(
            "Call this before you act on a user's request. It asks for missing facts"
            " (asked_questions; answer with the same session_id, or give slots), or decides:"
            " trace.mode act, clarify, or confirm. With trace.high_risk_confirmation.required show"
            " the risk and do nothing until the user confirmed. trace.best_success_path is a"
            " procedure that worked before. Keep decision_id for continuity_report_outcome."
        ),
        input_schema=CHAT_INPUT,
        output_schema=CHAT_OUTPUT,
        handler=_chat,
        idempotent=True,
    ),
    _tool(
        name="continuity_confirm_decision",
        title="Confirm a high-risk decision",
        description=(
            "Confirm a decision of continuity_chat whose trace.high_risk_confirmation.required is"
            " true. Call it only after the user themselves saw the risk and agreed. The token works"
            " once, for 30 minutes; if you got none, a person confirms outside this conversation."
        ),
        input_schema=schemas.CONFIRM_INPUT,
        output_schema=schemas.CONFIRM_OUTPUT,
        handler=partial(_call_service, confirm_decision),
    ),
    _tool(
        name="continuity_report_outcome",
        title="Report the outcome of a decision",
        description=(
            "Report once how a decision of continuity_chat turned out: outcome_status, a note, and"
            " if known system_caused, failure_type, actual_impact_vector, actual_cost and the"
            " procedure that worked. It updates the user's state; failures make later similar"
            " decisions more careful. You can send the returned proposed_success_path to"
            " continuity_put_success_path."
        ),
        input_schema=schemas.OUTCOME_INPUT,
        output_schema=schemas.OUTCOME_OUTPUT,
        handler=partial(_call_service, report_outcome),
        idempotent=True,
    ),
    _tool(
        name="continuity_get_state",
        title="Get a user's state",
        description=(
            "Return a user's resources: six axes (money, time, energy, asset, reliability,"
            " identity) from 0, nothing left, to 1, the confidence of each, and main_constraint,"
            " the scarcest."
        ),
        input_schema=schemas.STATE_INPUT,
        output_schema=schemas.STATE_OUTPUT,
        handler=_state,
        read_only=True,
    ),
    _tool(
        name="continuity_list_objects",
        title="List a user's objects",
        description=(
            "Return a user's Shell and success paths in their current versions, the last written"
            " first. A success path with steps can be repeated with the template"
            " replay_success_path (run_task_template)."
        ),
        input_schema=schemas.LIST_OBJECTS_INPUT,
        output_schema=schemas.LIST_OBJECTS_OUTPUT,
        handler=_objects,
        read_only=True,
    ),
    _tool(
        name="continuity_put_shell",
        title="Write a user's Shell",
        description=(
            "Overwrite the user's Shell, which is how they present themselves to others. source is"
            " user for what they stated; inferred needs evidence. Older versions are kept. With"
            " if_match, the version you read, a newer one is not overwritten."
        ),
        input_schema=schemas.PUT_SHELL_INPUT,
        output_schema=schemas.PUT_OBJECT_OUTPUT,
        handler=partial(_call_service, put_shell),
    ),
    _tool(
        name="continuity_put_success_path",
        title="Write a success path",
        description=(
            "Store a procedure that worked under a name; the same name again is a new version."
            " Every required slot needs a definition. procedure is a text, or steps [{tool, args}]"
            " with ${slot} for a slot, which replay_success_path can run without a model."
        ),
        input_schema=schemas.PUT_SUCCESS_PATH_INPUT,
        output_schema=schemas.PUT_OBJECT_OUTPUT,
        handler=partial(_call_service, put_success_path),
    ),
)
