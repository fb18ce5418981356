"""The parts of a call on a runner: the target, the context and its updates."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from runners.trust_level import TrustLevel

TIMEOUT_MS = 15_000  # S3 §7
TIMEOUT_MAX_MS = 180_000
PROBE_S = 5.0
CATALOGUE_MAX_BYTES = 256 * 1024  # of a runner's published list of tools


@dataclass(frozen=True, slots=True)
class Update:
    """A piece of a tool's output, sent while the tool executes.

    Attributes:
        at: time of the piece (ISO 8601) as sent by the runner, or None.
    """

    delta: str
    at: str | None


@dataclass(frozen=True, slots=True)
class RunnerTarget:
    """The data of a target that a call needs.

    Attributes:
        workspace_id: the target's workspace, or the caller's if all workspaces may use the target.
        timeout_ms, falls_back: from the target's config.
        opened_address: `ExecutionTarget.opened_address`.
    """

    target_id: str
    tenant_id: str
    workspace_id: str
    endpoint: str | None
    auth_token: str | None = field(default=None, repr=False)
    timeout_ms: int = TIMEOUT_MS
    kind: str = "docker-runner"
    falls_back: bool = False
    opened_address: str = ""

    def deadline(self, at_most: float) -> float:
        """Return the deadline of a call that starts now, as a `time.monotonic()` value: after the
        target's timeout, at the latest `at_most`.
        """
        own_ms = min(max(1, self.timeout_ms), TIMEOUT_MAX_MS)
        return min(at_most, time.monotonic() + own_ms / 1000)


@dataclass(frozen=True, slots=True)
class RunnerCallContext:
    """The context of a call on a runner (S3 §3, ctx).

    Attributes:
        run_id, session_id: of the run; new ids for a direct call.
        runtime_mode: the caller's trust level.
        deadline: `time.monotonic()` value at which the run or direct call ends.
        on_update: called on the event loop for each update, in order; it must not block.
        traceparent: trace of the call (W3C Trace Context).
    """

    run_id: str
    session_id: str
    runtime_mode: TrustLevel
    tool_call_id: str
    deadline: float
    on_update: Callable[[Update], None]
    traceparent: str | None = None
