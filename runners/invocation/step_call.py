"""What a step is known to do before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runners.invocation.fallback import Elsewhere


@dataclass(frozen=True, slots=True)
class StepCall:
    """A call that a step makes as soon as it begins, as `StepContext.call` takes it.

    Attributes:
        event: type and data of what is told of it together with the start of the step.
    """

    tool: str
    args: Mapping[str, Any]
    target_id: str | None = None
    remote: Elsewhere | None = None
    event: tuple[str, Mapping[str, Any]] | None = None
