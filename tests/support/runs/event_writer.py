"""A process that submits runs and writes their events, as a worker does.

`python -m tests.support.runs.event_writer RUNS EVENTS` prints the run ids as one line of JSON. When
it reads a line from stdin, it writes EVENTS events, distributed over the runs, cancels the runs and
prints the last seq of each.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from decisions.identity.principals import local_principal  # noqa: E402  (Django must be set up first)
from runs.lifecycle.changes import NewEvent, Transition  # noqa: E402
from runs.lifecycle.transition import apply  # noqa: E402
from runs.models import Run  # noqa: E402
from runs.submission.cancel import cancel_run  # noqa: E402
from runs.submission.submit import submit_run  # noqa: E402


def main(runs: int, events: int) -> None:
    """Submit the runs, wait for a line on stdin, write the events, cancel the runs."""
    principal, rng = local_principal(), random.Random(1)
    ids = [
        submit_run(
            principal=principal,
            template_id="test_stepwise",
            inputs={"do": ["ok"]},
            options={"mode": "async"},
        ).run_id
        for _ in range(runs)
    ]
    print_json(ids)
    sys.stdin.readline()
    rows = {run.id: run for run in Run.objects.filter(id__in=ids)}
    while events > 0:
        size = min(events, rng.randrange(1, 6))
        new_events = [NewEvent("tool.update", {"n": n, "text": "x" * 100}) for n in range(size)]
        apply(Transition(rows[rng.choice(ids)], {"status": "queued"}, events=new_events))
        events -= size
        time.sleep(rng.random() / 50)
    for run_id in ids:
        cancel_run(principal=principal, run_id=run_id)
    print_json(dict(Run.objects.filter(id__in=ids).values_list("id", "last_seq")))


def print_json(value: object) -> None:
    """Print a line of JSON."""
    print(json.dumps(value), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
