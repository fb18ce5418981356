"""A tool call that a step plans: of its first one, known before the step starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runners.invocation.fallback import RemoteCall


@dataclass(frozen=True, slots=True)
class StepCall:
    """A tool call of a step, with the arguments of `StepContext.call`.

    Attributes:
        event: of a first call, type and data of an event that is recorded with the step's start.
    """

    tool: str
    args: Mapping[str, Any]
    target_id: str | None = None
    remote: RemoteCall | None = None
    event: tuple[str, Mapping[str, Any]] | None = None
