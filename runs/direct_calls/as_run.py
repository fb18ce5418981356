"""A direct call that a worker carries: a run of `call_tools` with one call, waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
from django.db import transaction

from artifacts.selectors import open_content
from decisions.authorization.authorize import ToolCallRequest
from decisions.errors import ConfirmationRequired, Conflict
from decisions.identity.principals import Principal
from decisions.infra.threads import in_thread
from decisions.security.keys import mac
from runners.browser_sessions import find_named
from runners.tools.base import ToolResult
from runners.tools.registry import get_tool
from runners.workspace.errors import WorkspaceTimeout
from runs.direct_calls.refusals import recording_refusals
from runs.lifecycle.in_flight_calls import DirectCallOfRun
from runs.models import TERMINAL
from runs.sessions.services import create_session
from runs.streaming.long_poll import wait_run
from runs.submission.services import submit_run
from runs.submission.validation import SubmittedRun

START_MS = 20_000  # for a worker to take the run and open its browser, beside the tool's own time
PATIENCE_S = 55.0  # no call blocks longer (product.md, "MCP")
_OURS = frozenset({"runs:read", "runs:write", "sessions:write", "artifacts:read"})


@dataclass(frozen=True, slots=True)
class CarriedResult:
    """What came of a carried call."""

    result: ToolResult
    artifact_ids: Sequence[str] = ()


async def submit_call(principal: Principal, call: DirectCallOfRun, limit_ms: int) -> str:
    """Have a worker make a call, and return the id of its run: the first one's where the key is
    the same. Commits that the call begins, or that it was refused.

    Raises:
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
        Conflict: The key was used for another call.
    """
    return await in_thread(_submit_admitted, principal, call, limit_ms)


async def wait_for_call(principal: Principal, run_id: str, limit_ms: int) -> CarriedResult:
    """Wait for a call that was handed in and return what came of it.

    Raises:
        ConfirmationRequired: A person has to decide before its run goes on.
        ArtifactNotFound, ArtifactExpired: It was done before, and its output is not kept any more.
    """
    carrier = _carrier(principal)
    wait_s = min(PATIENCE_S, (limit_ms + START_MS) / 1000 + 2)
    run = await wait_run(principal=carrier, run_id=run_id, wait_s=wait_s)
    return CarriedResult(await _result_of(run, carrier), run["artifactIds"])


def _carrier(principal: Principal) -> Principal:
    """Return the caller as who its run belongs to: the scopes of tools were asked for; that a run
    carries the call is our affair.
    """
    return replace(principal, scopes=principal.scopes | _OURS)


def _submit_admitted(principal: Principal, call: DirectCallOfRun, limit_ms: int) -> str:
    with recording_refusals(principal=principal, name=call.request.tool):
        submitted = _submit(_carrier(principal), call, limit_ms)
        if submitted.inputs_match is False:
            raise Conflict("The idempotencyKey was used for another call.")
    if submitted.deduplicated:
        with transaction.atomic():
            call.start_with(submitted.run_id)
    return submitted.run_id


def _submit(carrier: Principal, call: DirectCallOfRun, limit_ms: int) -> SubmittedRun:
    use = call.request
    planned: dict[str, Any] = {"name": use.tool, "args": dict(use.args)}
    if use.target_id is not None:
        planned["targetId"] = use.target_id
    tool = get_tool(use.tool)
    if tool is not None and limit_ms < tool.timeout_ms:
        planned["timeoutMs"] = limit_ms
    options: dict[str, Any] = {"mode": "sync", "timeoutMs": limit_ms + START_MS}
    if use.key:
        options["idempotencyKey"] = "call:" + mac("call", f"{use.tool}\0{use.key}".encode())
    return submit_run(
        principal=carrier,
        template_id="call_tools",
        inputs={"calls": [planned]},
        options=options,
        session_id=_session_of(carrier, use),
        direct_call=call,
    )


def _session_of(carrier: Principal, use: ToolCallRequest) -> str | None:
    """Return the session that a caller's calls about a workspace share: what one call opened, the
    next one finds. Other tools have a browser of their own.
    """
    if use.target_id is None:
        return None
    name = f"pages of {use.target_id}"
    found = find_named(carrier, name)
    return found.id if found else str(create_session(principal=carrier, name=name)["sessionId"])


async def _result_of(run: Mapping[str, Any], carrier: Principal) -> ToolResult:
    if "waitingFor" in run:
        asked = run["waitingFor"]
        raise ConfirmationRequired(
            "A person has to decide before the call goes on; its run then does so by itself.",
            details={
                "runId": run["runId"],
                **{name: asked[name] for name in ("decisionId", "expiresAt") if name in asked},
            },
        )
    if run["status"] not in TERMINAL:
        slow = WorkspaceTimeout(
            "The call did not end in time; its run goes on.", details={"runId": run["runId"]}
        )
        return ToolResult(False, error=slow.as_dict())
    if run["error"] is not None:
        return ToolResult(False, error=run["error"])
    return ToolResult(True, output=await in_thread(_output_of, run["result"], carrier))


def _output_of(result: Mapping[str, Any], carrier: Principal) -> Mapping[str, Any]:
    """Return what the one call of a run answered, whole also where its run has it shortened.

    Raises:
        ArtifactNotFound, ArtifactExpired: The whole is not kept any more.
    """
    whole = _read_whole(result, carrier) if result.get("truncated") else result
    first = whole["results"][0]
    output: Mapping[str, Any] = first["output"]
    return _read_whole(first, carrier) if first.get("truncated") else output


def _read_whole(short: Mapping[str, Any], carrier: Principal) -> dict[str, Any]:
    _, file = open_content(principal=carrier, artifact_id=short["artifactId"])
    with file:
        whole: dict[str, Any] = orjson.loads(file.read())
    return whole
