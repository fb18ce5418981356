"""All forty tasks."""

from __future__ import annotations

from tests.trials.agent_bench.task import TASKS, BenchTask
from tests.trials.agent_bench.tasks import (
    access,
    failures,
    forms,
    gestures,
    layers,
    reading,
    windows,
)

MODULES = (access, failures, forms, gestures, layers, reading, windows)  # importing registers


def all_tasks() -> list[BenchTask]:
    """Return the tasks, ordered by kind and name."""
    return sorted(TASKS.values(), key=lambda task: (task.kind, task.name))
