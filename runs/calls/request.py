"""The request for a direct call, as REST and MCP create it, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from decisions.authorization.authorize import ToolCallRequest


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
