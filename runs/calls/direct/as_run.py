"""Perform a direct call as a run of `call_tools` with that one call, and wait for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
from django.db import transaction

from artifacts.selectors import open_content
from decisions.authorization.authorize import ToolCallRequest
from decisions.foundation.errors import ConfirmationRequired, Conflict
from decisions.foundation.infra.threads import in_thread
from decisions.foundation.security.keys import mac
from decisions.identity.principals import Principal
from runners.browser_sessions import find_named
from runners.tools.base import ToolResult
from runners.workspace.errors import WorkspaceTimeout
from runs.calls.direct.refusals import recording_refusals
from runs.calls.record import DirectCall
from runs.models import TERMINAL
from runs.sessions.services import create_session
from runs.streaming.long_poll import wait_run
from runs.submission.submit import submit_run
from runs.submission.submitted_run import SubmittedRun

START_MS = 20_000  # for a worker to claim the run and open its browser, besides the tool's limit
MAX_WAIT_S = 55.0  # longest time that a request of REST or MCP blocks
_RUN_SCOPES = frozenset({"runs:read", "runs:write", "sessions:write", "artifacts:read"})


def submit_call(call: DirectCall) -> str:
    """Submit a run that makes the call, and return the run's id; the same key again returns the
    first run's. Commits the call's start, or its refusal.

    Raises:
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
        Conflict: The key was used for another call.
    """
    with recording_refusals(principal=call.principal, name=call.tool.name):
        submitted = _submit(call)
        if submitted.inputs_match is False:
            raise Conflict("The idempotencyKey was used for another call.")
    if submitted.deduplicated:
        with transaction.atomic():
            call.start_with(submitted.run_id)
    return submitted.run_id


async def wait_for_call(call: DirectCall, run_id: str) -> tuple[ToolResult, Sequence[str]]:
    """Wait for the run of a submitted call and return the call's result, and the ids of its
    artifacts.

    Raises:
        ConfirmationRequired: The run is suspended until a person decides.
        ArtifactNotFound, ArtifactExpired: The call was made before, and its output was deleted.
    """
    owner = with_run_scopes(call.principal)
    wait_s = min(MAX_WAIT_S, (call.limit_ms + START_MS) / 1000 + 2)
    run = await wait_run(principal=owner, run_id=run_id, wait_s=wait_s)
    return await _result_of(run, owner), run["artifactIds"]


def with_run_scopes(principal: Principal) -> Principal:
    """Return the caller with the scopes that the run needs. The tool's scope was checked; that the
    call is performed as a run is an implementation detail.
    """
    return replace(principal, scopes=principal.scopes | _RUN_SCOPES)


def _submit(call: DirectCall) -> SubmittedRun:
    owner, request = with_run_scopes(call.principal), call.request
    planned: dict[str, Any] = {"name": request.tool, "args": dict(request.args)}
    if request.target_id is not None:
        planned["targetId"] = request.target_id
    if call.limit_ms < call.tool.timeout_ms:
        planned["timeoutMs"] = call.limit_ms
    options: dict[str, Any] = {"mode": "sync", "timeoutMs": call.limit_ms + START_MS}
    if request.key:
        options["idempotencyKey"] = "call:" + mac("call", f"{request.tool}\0{request.key}".encode())
    return submit_run(
        principal=owner,
        template_id="call_tools",
        inputs={"calls": [planned]},
        options=options,
        session_id=_session_of(owner, request),
        direct_call=call,
    )


def _session_of(owner: Principal, request: ToolCallRequest) -> str | None:
    """Return the session that the caller's calls for one workspace share, so that the next call
    finds the pages of this one; None for tools without a target.
    """
    if request.target_id is None:
        return None
    name = f"pages of {request.target_id}"
    session = find_named(owner, name)
    return session.id if session else str(create_session(principal=owner, name=name)["sessionId"])


async def _result_of(run: Mapping[str, Any], owner: Principal) -> ToolResult:
    if "waitingFor" in run:
        waiting = run["waitingFor"]
        raise ConfirmationRequired(
            "A person has to decide first; then the run of this call continues by itself.",
            details={
                "runId": run["runId"],
                **{name: waiting[name] for name in ("decisionId", "expiresAt") if name in waiting},
            },
        )
    if run["status"] not in TERMINAL:
        timeout = WorkspaceTimeout(
            "The call did not end in time; its run continues.", details={"runId": run["runId"]}
        )
        return ToolResult(False, error=timeout.as_dict())
    if run["error"] is not None:
        return ToolResult(False, error=run["error"])
    return ToolResult(True, output=await in_thread(_output_of, run["result"], owner))


def _output_of(result: Mapping[str, Any], owner: Principal) -> Mapping[str, Any]:
    """Return the whole output of the run's only call, from the artifact if it was shortened.

    Raises:
        ArtifactNotFound, ArtifactExpired: The artifact was deleted.
    """
    whole = _read_whole(result, owner) if result.get("truncated") else result
    first = whole["results"][0]
    output: Mapping[str, Any] = first["output"]
    return _read_whole(first, owner) if first.get("truncated") else output


def _read_whole(shortened: Mapping[str, Any], owner: Principal) -> dict[str, Any]:
    _, file = open_content(principal=owner, artifact_id=shortened["artifactId"])
    with file:
        whole: dict[str, Any] = orjson.loads(file.read())
    return whole
