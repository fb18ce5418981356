"""The answer to a submit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runs.models import Run


@dataclass(frozen=True, slots=True)
class SubmittedRun:
    """The answer to a submit or a retry; the run is committed.

    Attributes:
        run: as it was when it was written or, for a repeated call, found.
        is_auto_mode: the caller chose mode auto: after 55 s it gets the handle instead of the
            result.
        inputs_match: whether the first submit with the same key had the same inputs; True for a
            repeated retry; None if this call created the run.
    """

    run: Run
    is_auto_mode: bool = False
    inputs_match: bool | None = None

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.run.id

    @property
    def deduplicated(self) -> bool:
        """Whether an earlier submit or retry created the run."""
        return self.inputs_match is not None

    def as_dict(self) -> dict[str, Any]:
        """Return the handle: the answer of REST and MCP to a submit that does not wait."""
        answer: dict[str, Any] = {
            "runId": self.run.id,
            "sessionId": self.run.session_id,
            "status": str(self.run.status),
            "mode": self.run.mode,
            "deduplicated": self.deduplicated,
        }
        return answer | ({} if self.inputs_match is None else {"inputsMatch": self.inputs_match})
