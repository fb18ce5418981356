"""A direct call as a door hands it over, and what it is answered with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from decisions.authorization.authorize import ToolCallRequest


@dataclass(frozen=True, slots=True)
class DirectCallRequest:
    """A direct call as a door hands it over.

    Attributes:
        timeout_ms: at most this long; the tool's own time otherwise.
        key: names the call, so that the one that a person confirmed is known again.
        offered: names of the tools that the door offers; all that may be used otherwise.
        on_update: told each piece of what a runner's tool says while it works, on the event loop;
            it must not block.
        stands_for: the call that the caller made, where this one is made instead.
        marks: what the answer has besides.
    """

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    target_id: str | None = None
    timeout_ms: int | None = None
    key: str = ""
    offered: Sequence[str] | None = None
    on_update: Callable[[str], None] | None = None
    stands_for: ToolCallRequest | None = None
    marks: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DirectCallResult:
    """What a call came to; one that failed is raised instead.

    Attributes:
        call_id: what the audit log names it.
        run_id: the run that carried it.
        marks: {truncated, artifactId} of a runner's output that is large, {fellBackFrom} where its
            runner was not reached.
    """

    output: Any
    call_id: str
    run_id: str | None = None
    artifact_ids: Sequence[str] = ()
    marks: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the answer of REST."""
        told: dict[str, Any] = {"ok": True, "output": self.output, "callId": self.call_id}
        told |= self.marks
        if self.run_id is not None:
            told["runId"] = self.run_id
        return told | ({"artifactIds": list(self.artifact_ids)} if self.artifact_ids else {})
