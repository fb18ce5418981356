"""The toolset `continuity`: S2's calls. Each hands its arguments to the function that REST calls,
and its answer back as it is: no rule lives here (S2 §1, §2).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from decisions.authorization.confirm_by_token import confirm_decision
from decisions.chat.contract import CHAT_INPUT, CHAT_OUTPUT
from decisions.chat.services import chat
from decisions.continuity import contract
from decisions.continuity.objects import list_objects, put_shell, put_success_path
from decisions.continuity.outcomes import report_outcome
from decisions.continuity.shared import as_continuity_error
from decisions.continuity.state import get_state
from decisions.infra.threads import in_thread
from mcp_server.tools.registry import McpTool, McpToolCall

Service = Callable[..., dict[str, Any]]
_OBJECT_TYPE = {"type": "object_type"}


async def _chat(call: McpToolCall) -> dict[str, Any]:
    return await chat(principal=call.principal, call=call.arguments)


async def _state(call: McpToolCall) -> dict[str, Any]:
    return await in_thread(get_state, principal=call.principal, user_id=call.arguments["user_id"])


async def _objects(call: McpToolCall) -> dict[str, Any]:
    asked = {_OBJECT_TYPE.get(name, name): value for name, value in call.arguments.items()}
    return await in_thread(list_objects, principal=call.principal, **asked)


async def _carry(service: Service, call: McpToolCall) -> dict[str, Any]:
    """Hand a call on as a whole."""
    return await in_thread(service, principal=call.principal, call=call.arguments)


_tool = partial(McpTool, refusal_as_dict=as_continuity_error)

TOOLS = (
    _tool(
        name="continuity_chat",
        title="Tell what a user asks for",
        description=(
            "Call this before you act on what a user asks for. It asks back for what has to be"
            " known (asked_questions; answer with the same session_id, or give slots), or decides:"
            " trace.mode act, clarify, or confirm. With trace.high_risk_confirmation.required show"
            " the risk and do nothing until the user confirmed. trace.best_success_path is a way"
            " that worked before. Keep decision_id for continuity_report_outcome."
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
            " true. Call it only after the user saw the risk and said yes themselves. The token is"
            " good once, for 30 minutes; where the answer had none, people confirm elsewhere."
        ),
        input_schema=contract.CONFIRM_INPUT,
        output_schema=contract.CONFIRM_OUTPUT,
        handler=partial(_carry, confirm_decision),
    ),
    _tool(
        name="continuity_report_outcome",
        title="Report what became of a decision",
        description=(
            "Say once how a decision of continuity_chat turned out: outcome_status, a note, and if"
            " you know them system_caused, failure_type, actual_impact_vector, actual_cost, and the"
            " procedure that worked. The user's state moves by it; failures make later decisions"
            " like it more careful. proposed_success_path in the answer can be sent to"
            " continuity_put_success_path."
        ),
        input_schema=contract.OUTCOME_INPUT,
        output_schema=contract.OUTCOME_OUTPUT,
        handler=partial(_carry, report_outcome),
        idempotent=True,
    ),
    _tool(
        name="continuity_get_state",
        title="Get a user's state",
        description=(
            "Return what a user has to spend: six axes (money, time, energy, asset, reliability,"
            " identity) from 0, nothing left, to 1, how sure each is, and main_constraint, the"
            " scarcest of them."
        ),
        input_schema=contract.STATE_INPUT,
        output_schema=contract.STATE_OUTPUT,
        handler=_state,
        read_only=True,
        idempotent=True,
    ),
    _tool(
        name="continuity_list_objects",
        title="List a user's objects",
        description=(
            "Return a user's Shell and success paths in their current versions, the last written"
            " first. A success path with steps can be run again with run_task_template,"
            " replay_success_path."
        ),
        input_schema=contract.LIST_OBJECTS_INPUT,
        output_schema=contract.LIST_OBJECTS_OUTPUT,
        handler=_objects,
        read_only=True,
        idempotent=True,
    ),
    _tool(
        name="continuity_put_shell",
        title="Write a user's Shell",
        description=(
            "Overwrite the user's one Shell: how others meet them, what they tell of themselves."
            " source user for what they said; inferred needs evidence. Older versions are kept."
            " if_match with the version you read refuses to overwrite a newer one."
        ),
        input_schema=contract.PUT_SHELL_INPUT,
        output_schema=contract.PUT_OBJECT_OUTPUT,
        handler=partial(_carry, put_shell),
    ),
    _tool(
        name="continuity_put_success_path",
        title="Write a success path",
        description=(
            "Keep a way that worked, by its name; the same name again is a new version. Every"
            " required slot needs a definition. procedure is a text, or steps [{tool, args}] in"
            " which ${slot} stands for a slot, which replay_success_path can run without a model."
        ),
        input_schema=contract.PUT_SUCCESS_PATH_INPUT,
        output_schema=contract.PUT_OBJECT_OUTPUT,
        handler=partial(_carry, put_success_path),
    ),
)
