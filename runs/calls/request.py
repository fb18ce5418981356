"""The request for a tool call, of a step or direct, and the result of a direct call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from decisions.authorization.authorize import ToolCallRequest
from decisions.foundation.security.masking import Masker
from decisions.identity.principals import as_trust
from runners.actions.judged import covered_tools
from runners.invocation.planned_call import StepCall
from runners.targets.targets import Caller
from runners.tools.registry import get_tool
from runs.models import Run


def request_of_step(
    run: Run,
    *,
    index: int,
    call: StepCall,
    masker: Masker,
    number: int = 0,
    may_have_confirmation: bool = False,
    is_lost: bool = False,
) -> ToolCallRequest:
    """Return the request for a step's call, the `number`th of the step, as policy judges it.

    A person who decides on it sees the exact arguments: no secret is placed in them by value, a
    tool gets one by its name (`fill_field`). Records have masks, also where a value equals one.
    """
    is_builtin = call.remote is None and get_tool(call.tool) is not None
    return ToolCallRequest(
        principal_id=run.principal_id,
        tenant_id=run.tenant_id,
        workspace_id=run.workspace_id,
        user_id=run.user_id,
        trust=as_trust(run.trust),
        tool=call.tool,
        args=call.args,
        target_id=call.target_id,
        run_id=run.id,
        step_index=index,
        number=number,
        may_have_confirmation=may_have_confirmation,
        display_args=masker.value(call.args),
        is_builtin=is_builtin,
        covers=covered_tools(call.tool, call.args, None) if is_builtin else frozenset(),
        is_lost=is_lost,
    )


def caller_of(run: Run) -> Caller:
    """Return the caller in whose name a run makes its calls."""
    return Caller(run.principal_id, run.tenant_id, run.workspace_id, as_trust(run.trust))


@dataclass(frozen=True, slots=True)
class DirectCallRequest:
    """A request for a direct call.

    Attributes:
        target_id: the workspace or runner; None for the default one of the tool's kind.
        timeout_ms: at most this long; None for the tool's own limit.
        key: the idempotency key; empty without one.
        offered: names of the tools that the transport offers; None for all.
        on_update: called on the event loop with each update that a runner's tool sends while it
            runs; must not block.
        fallback_for: the caller's own call, if this one replaces it because its runner was
            unreachable.
        marks: entries to add to the answer.
    """

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    target_id: str | None = None
    timeout_ms: int | None = None
    key: str = ""
    offered: Sequence[str] | None = None
    on_update: Callable[[str], None] | None = None
    fallback_for: ToolCallRequest | None = None
    marks: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DirectCallResult:
    """The result of a successful call; a failure is raised instead.

    Attributes:
        call_id: the call's id in the audit log.
        run_id: the run that performed the call, if one did.
        marks: {truncated, artifactId} for a shortened output of a runner; {fellBackFrom} if the
            runner was unreachable.
    """

    output: Any
    call_id: str
    run_id: str | None = None
    artifact_ids: Sequence[str] = ()
    marks: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the response body of the REST API."""
        body: dict[str, Any] = {"ok": True, "output": self.output, "callId": self.call_id}
        body |= self.marks
        if self.run_id is not None:
            body["runId"] = self.run_id
        return body | ({"artifactIds": list(self.artifact_ids)} if self.artifact_ids else {})
