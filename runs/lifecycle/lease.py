"""A worker's lease of a run, which guards every write of the worker; `runs.queue` begins and ends
leases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from runs.lifecycle.changes import StepChange
from runs.models import Run, RunStatus, RunStep


class LeaseLost(Exception):
    """The run or its step no longer belongs to this worker: it was canceled, or another worker has
    it. Nothing was written; stop working on it.
    """


@dataclass(frozen=True, slots=True)
class Lease:
    """A worker's lease of a run; every write of the worker tests its `epoch`.

    Attributes:
        steps: the steps of the run, as read at the claim.
        started: those of them that start in the claim's own statement; none where the run was
            claimed before.
        is_helper: another worker has the lease; this one only executes some of the steps
            (`runs.queue.work_sharing`).
        in_flight_calls: ids of the tool calls that were recorded as started under this lease, and
            not yet as ended.
    """

    run: Run
    worker_id: str
    steps: Sequence[RunStep] = ()
    started: Sequence[StepChange] = ()
    is_helper: bool = False
    in_flight_calls: list[str] = field(default_factory=list)

    @property
    def guard(self) -> dict[str, Any]:
        """The values that the run's row must have for this worker to write."""
        owner = {} if self.is_helper else {"lease_owner": self.worker_id}
        return {"status": RunStatus.RUNNING, "epoch": self.epoch, **owner}

    @property
    def epoch(self) -> int:
        """The run's epoch since the claim."""
        return self.run.epoch


def require_lease(run: Run) -> None:
    """Check by one query that the run is still leased as it was claimed.

    Raises:
        LeaseLost: The run was canceled, or another worker may have it.
    """
    if not Run.objects.filter(id=run.id, status=RunStatus.RUNNING, epoch=run.epoch).exists():
        raise LeaseLost
