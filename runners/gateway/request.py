"""What a call on a runner is made of: the target, and whose call it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from runners.trust import TrustLevel

TIMEOUT_MS = 15_000  # S3 §7
TIMEOUT_MAX_MS = 180_000
PROBE_S = 5.0
CATALOGUE_MAX_BYTES = 256 * 1024  # of what a runner publishes of its tools


@dataclass(frozen=True, slots=True)
class Update:
    """A piece of a tool's output as it came.

    Attributes:
        at: when, as the runner says it (ISO 8601); None where it does not say.
    """

    delta: str
    at: str | None


@dataclass(frozen=True, slots=True)
class RunnerTarget:
    """A target as a call needs it.

    Attributes:
        workspace_id: the target's, or that of the caller where every workspace may use it: the
            runner is always told whom it works for.
        timeout_ms, falls_back: what the target's config says.
    """

    target_id: str
    tenant_id: str
    workspace_id: str
    endpoint: str | None
    auth_token: str | None = field(default=None, repr=False)
    timeout_ms: int = TIMEOUT_MS
    kind: str = "docker-runner"
    falls_back: bool = False

    def deadline(self, at_most: float) -> float:
        """Return the `time.monotonic()` seconds at which a call that begins now is over: after the
        target's time, and never after `at_most`.
        """
        own_ms = min(max(1, self.timeout_ms), TIMEOUT_MAX_MS)
        return min(at_most, time.monotonic() + own_ms / 1000)


@dataclass(frozen=True, slots=True)
class CallContext:
    """Whose call it is, and who listens (S3 §3, ctx).

    Attributes:
        run_id, session_id: made for the call where it has no run.
        runtime_mode: the caller's trust level.
        deadline: `time.monotonic()` seconds at which whatever the call belongs to ends.
        on_update: called on the loop, in order, as each piece of output comes; it must not block.
        traceparent: of the trace that the call is part of (W3C Trace Context).
    """

    run_id: str
    session_id: str
    runtime_mode: TrustLevel
    tool_call_id: str
    deadline: float
    on_update: Callable[[Update], None]
    traceparent: str | None = None
