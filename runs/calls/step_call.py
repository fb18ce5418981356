"""Make a tool call of a step: request, policy with the page that it is about, target, start,
invocation, record, and the answer to the template.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import Authorization, ToolCallRequest, confirmed_basis
from decisions.foundation.errors import Refused
from runners.errors import PageLost, ToolFailed
from runners.gateway.request import RunnerTarget
from runners.invocation.arguments import check_args
from runners.invocation.fallback import RemoteCall, falls_back, local_tool
from runners.invocation.invoke import invoke, raise_if_interrupted
from runners.invocation.planned_call import StepCall
from runners.tools.base import ToolCall, ToolContext, ToolResult
from runs.calls.attempt import StepAttempt
from runs.calls.page import (
    MAX_RENEWALS,
    PageCall,
    changed_too_often,
    counted_warning,
    judge_page,
    may_ask_page,
    was_changed,
    with_shown_element,
    with_warning,
)
from runs.calls.record import CallRecord
from runs.calls.request import request_of_step
from runs.calls.shown_page import with_shown_page
from runs.calls.step_start import start_step_call
from runs.calls.target import PairedBrowserTarget, StepTarget, browser_of_call
from runs.events.types import EventType
from runs.failpoints import hit
from runs.journal.interruptions import CallFailed, NeedsPerson, TakenOver
from runs.models import Run

MAX_JUDGEMENTS = 4  # of a call whose element changes between its judgement and its input


async def call_from_step(
    attempt: StepAttempt,
    tool: str,
    args: Mapping[str, Any],
    *,
    target_id: str | None = None,
    timeout_ms: int | None = None,
    remote: RemoteCall | None = None,
) -> Mapping[str, Any]:
    """Call a tool and return its output; the arguments are those of `StepContext.call`.

    Raises:
        CallFailed: The tool failed, or policy or a person denied the call.
        PageLost: The page on which a person was asked to confirm the call was lost.
        NeedsPerson: The step is suspended. Once a person has decided, it runs again from its
            start, with the outcomes of its earlier calls replayed.
    """
    request = request_of_step(
        attempt.run,
        index=attempt.index,
        call=StepCall(tool, args, target_id or browser_of_call(attempt.run, tool), remote),
        masker=attempt.secret_masker,
        number=len(attempt.calls),
        may_have_confirmation=attempt.replay is not None,
        is_lost=attempt.is_lost_call,
    )
    call = _replayed(request, attempt.replay)
    if call is None:
        outcome = await _perform(attempt, request, timeout_ms, remote)
        call = {"tool": tool, "digest": request.digest, **outcome}
    attempt.calls.append(call)
    if falls_back(ToolResult(call.get("error") is None, error=call.get("error"))):
        return await _call_local_tool(attempt, tool, args, remote, timeout_ms)
    if call.get("error") is not None:
        raise CallFailed(call["error"])
    output: Mapping[str, Any] = call["output"]
    return output


def _replayed(
    request: ToolCallRequest, replay: Sequence[Mapping[str, Any]] | None
) -> dict[str, Any] | None:
    """Return the outcome of this call from before the step was suspended; None where it was not
    made then.

    Raises:
        ToolFailed: The step makes another call than before. Nothing is repeated, and the approval
            was given for the other call.
    """
    if replay is None or request.number >= len(replay):
        return None
    call = dict(replay[request.number])
    if call["tool"] != request.tool or call["digest"] not in request.digests:
        raise ToolFailed(
            f"The resumed step calls {request.tool} where it had called {call['tool']} before.",
            details={"causeCode": "STEP_CHANGED", "effect": "unknown"},
        )
    return call


async def _call_local_tool(
    attempt: StepAttempt,
    tool: str,
    args: Mapping[str, Any],
    remote: RemoteCall | None,
    timeout_ms: int | None,
) -> Mapping[str, Any]:
    """Call the local tool instead of a runner that was not reached; authorized as any call."""
    own, target_id = local_tool(tool), remote.fallback_target_id if remote else None
    try:
        checked = check_args(own, args) if own is not None else dict(args)
    except (ToolFailed, Refused) as wrong:
        raise CallFailed(wrong.as_dict()) from None
    return await call_from_step(attempt, tool, checked, target_id=target_id, timeout_ms=timeout_ms)


async def _perform(
    attempt: StepAttempt,
    request: ToolCallRequest,
    timeout_ms: int | None,
    remote: RemoteCall | None,
) -> dict[str, Any]:
    """Make a call and return its outcome: {output} or {error}."""
    first, attempt.first = attempt.first, None
    if first is not None and first.request == request:
        target = _for_caller(first.target, remote)
        context = _context(attempt, request, target, timeout_ms)
        return await _invoke(attempt, request, first.call, context)
    may_be_judged_again = True
    for judgements in range(1, MAX_JUDGEMENTS + 1):
        outcome, may_be_judged_again = await _judge_and_perform(
            attempt, request, timeout_ms, remote, is_asked=judgements > 1
        )
        if not may_be_judged_again:
            break
        request = replace(request, may_have_confirmation=True)
    return outcome


async def _judge_and_perform(
    attempt: StepAttempt,
    request: ToolCallRequest,
    timeout_ms: int | None,
    remote: RemoteCall | None,
    *,
    is_asked: bool,
) -> tuple[dict[str, Any], bool]:
    """Perform a call as it is judged now; return its outcome, and whether nothing was done because
    something had changed since.
    """
    try:
        request, page = await judge_page(attempt, request, is_asked=is_asked)
        call, is_lost = CallRecord.of(request), _has_lost_page(attempt, request)
        authorize_and_start = partial(
            start_step_call,
            request=request,
            call=call,
            may_start=not is_lost,
            in_flight_calls=attempt.in_flight_calls,
        )
        start = await attempt.query_run(authorize_and_start)
    except (ToolFailed, Refused) as failed:
        return {"error": failed.as_dict()}, False
    if is_lost:
        raise _page_lost(request)
    authorization = start.authorization
    if authorization is None or authorization.decision == "confirm":
        if page is None and authorization and not is_asked and may_ask_page(request):
            return {}, True
        return await _suspend(attempt, request, page, authorization), False
    attempt.call_records.append(call)
    target = _for_caller(start.target, remote)
    context = replace(
        _context(attempt, request, target, timeout_ms),
        confirmed_basis=confirmed_basis(authorization.confirmation),
        judged=page.expected(authorization) if page else None,
    )
    outcome = await _invoke(attempt, request, call, context)
    if page is not None and (confirmation := authorization.confirmation) is not None:
        decision, now = confirmation.decision, page.judged
        counted = await attempt.query_run(lambda run: counted_warning(decision, now))
        outcome = with_warning(outcome, counted)
    return outcome, page is not None and was_changed(outcome)


def _has_lost_page(attempt: StepAttempt, request: ToolCallRequest) -> bool:
    """Return whether a person was asked to confirm this call on a page that was lost."""
    was_asked = attempt.had_page and request.number == len(attempt.replay or ())
    return was_asked and (attempt.browser is None or not attempt.browser.has_page)


def _page_lost(request: ToolCallRequest) -> PageLost:
    return PageLost(
        "The page was lost while the run waited for a person; the call was not made.",
        details={"causeCode": "PAGE_CRASHED", "effect": "none", "step": request.step_index},
        recovery="Open the page again, then decide on the call again: it had no effect.",
    )


async def _suspend(
    attempt: StepAttempt,
    request: ToolCallRequest,
    page: PageCall | None,
    authorization: Authorization | None,
) -> dict[str, Any]:
    """Suspend the step for a person; return the error of a call whose element changed after each
    confirmation.

    Raises:
        TakenOver, NeedsPerson: The step is suspended.
    """
    if attempt.browser is not None:  # a trace that records during the wait fills the disk
        await attempt.browser.tracer.drop()
    if authorization is None:
        raise TakenOver(request)
    request = replace(request, target_state=authorization.target_state)
    older = authorization.supersedes
    if page is None:
        shown = partial(with_shown_page, request=request, journal=attempt.earlier)
        raise NeedsPerson(await attempt.query_run(shown), authorization)
    if authorization.renewals > MAX_RENEWALS:
        failed = await attempt.query_run(lambda run: changed_too_often(page.judged, older))
        return {"error": failed.as_dict()}
    shown_to = await attempt.query_run(lambda run: with_shown_element(request, page.judged, older))
    raise NeedsPerson(shown_to, authorization)


def _context(
    attempt: StepAttempt,
    request: ToolCallRequest,
    target: StepTarget | None,
    timeout_ms: int | None,
) -> ToolContext:
    context = attempt.tool_context(target)
    if isinstance(target, PairedBrowserTarget):
        context = replace(context, paired_browser=attempt.paired_browser(request, target))
    if timeout_ms is None:
        return context
    until = time.monotonic() + timeout_ms / 1000
    return replace(context, deadline=min(context.deadline, until))


async def _invoke(
    attempt: StepAttempt, request: ToolCallRequest, call: CallRecord, context: ToolContext
) -> dict[str, Any]:
    """Invoke the tool of a call that has started, and record its result."""
    hit("before_call")
    is_for_page = context.runner is None and context.workspace is None
    args = attempt.known_urls.restored(request.args) if is_for_page else request.args
    result = await invoke(ToolCall(request.tool, args, request.target_id), context)
    hit("after_call")
    call.set_result(result)
    raise_if_interrupted()
    if falls_back(result):
        reason = str((result.error or {})["details"]["reason"])
        data = {"tool": request.tool, "targetId": request.target_id, "reason": reason}
        await attempt.query_run(partial(_record_fallback, step=request.step_index, data=data))
        attempt.emit(EventType.TOOL_FELL_BACK, data)
    return {"output": result.output} if result.ok else {"error": result.error or {}}


def _record_fallback(run: Run, *, step: int | None, data: Mapping[str, Any]) -> None:
    """Record that a call which did not reach its runner is made by the local tool; commits."""
    details = {**data, "tool": str(data["tool"])[:128], "step": step}
    scope = run.tenant_id, run.workspace_id
    record(AuditEvent("tool.fell_back", run.principal_id, "run", run.id, *scope, details))


def _for_caller(target: StepTarget | None, remote: RemoteCall | None) -> StepTarget | None:
    """Return the target; for a caller who may not use the local tool, without a fallback to it."""
    if isinstance(target, RunnerTarget) and remote and not remote.may_fall_back:
        return replace(target, falls_back=False)
    return target
