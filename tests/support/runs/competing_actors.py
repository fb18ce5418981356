"""Actors that make transitions of the same few runs at once: workers, callers, people, schedulers.

`python -m tests.support.runs.competing_actors SEED SECONDS` is one of them, in a process of its
own; it prints how often it made each transition as one line of JSON.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable

if __name__ == "__main__":
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()

from django.db.models import F

from artifacts.services import StoredBlob, store_blob
from decisions.authorization.authorize import authorize, tool_call_request
from decisions.authorization.confirmations import confirm, refuse
from decisions.foundation.database import repeat
from decisions.foundation.errors import Refused
from decisions.foundation.infra.ids import new_id
from decisions.identity.principals import Principal, local_principal
from runners.models import BrowserSession
from runs.execution.suspension import suspend
from runs.journal import step_records, writer
from runs.journal.interruptions import NeedsAnswer, NeedsPerson
from runs.lifecycle.changes import NewEvent, StepChange
from runs.lifecycle.lease import Lease, LeaseLost
from runs.models import RETRIABLE, Run, RunStatus, RunStep, StepStatus, Worker
from runs.queue import lease_expiry, leases
from runs.submission import cancel, resume, retry, submit
from runs.submission.answer import answer_run
from tests.support.runs.worker_rows import register

MAX_UNFINISHED = 12
MAX_LEASES = 2  # of one actor at a time
WEIGHTS = {
    "submit": 4,
    "claim": 10,
    "journal": 12,
    "end": 3,
    "release": 2,
    "suspend": 5,
    "answer": 4,
    "confirm": 4,
    "cancel": 2,
    "retry": 2,
    "resume": 8,
    "reap": 1,
}


class Actor:
    """One thread or process that makes random transitions until its time is over."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._principal: Principal = local_principal()
        self._worker_id = register(new_id("wrk_"))
        self._leases: list[Lease] = []
        self.made: Counter[str] = Counter()

    def act(self, is_over: Callable[[], bool]) -> None:
        """Make transitions until it is over, and count them in `made`. One that is refused because
        another was first is not counted; any other exception is raised.
        """
        names, weights = list(WEIGHTS), list(WEIGHTS.values())
        while not is_over():
            [name] = self._random.choices(names, weights)
            try:
                self.made[name] += getattr(self, f"_{name}")()
            except (Refused, LeaseLost):
                self.made["refused"] += 1

    # --- callers and people -----------------------------------------------------------------------

    def _submit(self) -> bool:
        unfinished = Run.objects.filter(ended_at__isnull=True).count()
        if unfinished >= MAX_UNFINISHED:
            return False
        open_ids = BrowserSession.objects.values_list("id", flat=True)
        submit.submit_run(
            principal=self._principal,
            template_id="test_stepwise",
            inputs={"do": ["ok"] * 3, "concurrency": self._random.choice([1, 2])},
            session_id=self._random.choice([None, None, *open_ids]),
            options={"mode": "async"},
        )
        return True

    def _run(self, **columns: object) -> Run | None:
        found = list(Run.objects.filter(**columns).order_by("-created_at")[:MAX_UNFINISHED])
        return self._random.choice(found) if found else None

    def _cancel(self) -> bool:
        run = self._run(ended_at__isnull=True)
        if run is None:
            return False
        return bool(cancel.cancel_run(principal=self._principal, run_id=run.id)["success"])

    def _retry(self) -> bool:
        run = self._run(status__in=RETRIABLE)
        if run is None or Run.objects.filter(ended_at__isnull=True).count() >= MAX_UNFINISHED:
            return False
        return not retry.retry_run(principal=self._principal, run_id=run.id).deduplicated

    def _answer(self) -> bool:
        run = self._run(waiting_for__type="answer")
        if run is None:
            return False
        answer_run(principal=self._principal, run_id=run.id, answer="this one")
        return True

    def _confirm(self) -> bool:
        run = self._run(waiting_for__type="confirmation")
        if run is None or run.waiting_for is None:
            return False
        decide = self._random.choice([confirm, confirm, refuse])
        decide(decision_id=run.waiting_for["decisionId"], by="admin:ann", how="admin")
        return True

    # --- a worker ---------------------------------------------------------------------------------

    def _claim(self) -> bool:
        if len(self._leases) >= MAX_LEASES:
            return False
        if not Worker.objects.filter(id=self._worker_id, lost_at__isnull=True).exists():
            self._worker_id = register(new_id("wrk_"))
        lease = leases.claim_run(self._worker_id)
        if lease is None:
            return False
        self._leases.append(lease)
        return True

    def _pop_lease(self) -> Lease | None:
        if not self._leases:
            return None
        return self._leases.pop(self._random.randrange(len(self._leases)))

    def _journal(self) -> bool:
        lease = self._pop_lease()
        if lease is None:
            return False
        rows = [row for row in lease.steps if row.status != StepStatus.SUCCEEDED]
        changes = [self._next_change(row) for row in rows[:2]]
        writer.write(lease, changes, active_ms=1, events=[NewEvent("tool.update", {})])
        self._leases.append(lease)  # left out where the lease was lost
        return True

    def _next_change(self, row: RunStep) -> StepChange:
        if row.status == StepStatus.PENDING:
            row.attempts += 1
            row.status = StepStatus.STARTED
            return step_records.started(row)
        row.status = StepStatus.SUCCEEDED
        return StepChange(
            row.index, StepStatus.SUCCEEDED, [], output={"did": "ok"}, blobs=[_blob("page")]
        )

    def _end(self) -> bool:
        lease = self._pop_lease()
        if lease is None:
            return False
        rows = [row for row in lease.steps if row.status != StepStatus.SUCCEEDED]
        changes = [
            StepChange(row.index, StepStatus.SUCCEEDED, [], output={"did": "ok"}) for row in rows
        ]
        ending = writer.Ending(RunStatus.SUCCEEDED, result={"done": 3}, blobs=[_blob("result")])
        writer.write(lease, changes, active_ms=1, ending=ending)
        return True

    def _release(self) -> bool:
        lease = self._pop_lease()
        return lease is not None and leases.release_lease(lease, reason="draining", active_ms=1)

    def _suspend(self) -> bool:
        lease = self._pop_lease()
        if lease is None:
            return False
        wait: NeedsAnswer | NeedsPerson = NeedsAnswer("Which one?")
        if self._random.random() < 0.5:
            args = {"text": "x"}
            where = {"run_id": lease.run.id, "step_index": 0, "number": lease.epoch}
            request = tool_call_request(self._principal, "test_risk", args, **where)
            authorization = authorize(request)
            if authorization.decision == "confirm":
                wait = NeedsPerson(request, authorization)
        keeps_page = self._random.random() < 0.3
        suspend(lease, wait, ([], []), active_ms=1, keeps_page=keeps_page)
        return True

    # --- schedulers -------------------------------------------------------------------------------

    def _resume(self) -> bool:
        # Some questions have expired by now.
        return resume.resume_settled_runs() > 0

    def _reap(self) -> bool:
        workers = list(Worker.objects.filter(lost_at__isnull=True))
        lease_expiry.end_stray_leases()
        lease_expiry.free_stale_slots()
        if not workers:
            return False
        lost = self._random.choice(workers)
        lease_expiry.end_leases_of_worker(lost.id, beat=lost.beat, reason="lost")
        return True


def _blob(name: str) -> StoredBlob:
    return store_blob(b"the same bytes", name=name, mime_type="text/plain")


def end_all_runs() -> None:
    """End what the actors left unfinished, as a caller and the scheduler do."""
    for run_id in Run.objects.filter(ended_at__isnull=True).values_list("id", flat=True):
        cancel.cancel_authorized_run(run_id, by="test", reason="the test is over")
    Worker.objects.update(lost_at=F("started_at"))
    lease_expiry.free_stale_slots()


def main(seed: int, seconds: float) -> None:
    """Make transitions for this long, without repeating any after a deadlock."""
    repeat.CONFLICTS = frozenset()
    actor, until = Actor(seed), time.monotonic() + seconds
    actor.act(lambda: time.monotonic() >= until)
    print(json.dumps(actor.made))  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
