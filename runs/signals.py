"""What the work tells whoever listens above it, inside the transaction in which it happened."""

from __future__ import annotations

from django.dispatch import Signal

# A run of a task changed: `change` (the `runs.lifecycle.changes.Transition` that was written).
run_of_task_changed = Signal()

# Somebody answered a run of a task at another door than the task's: `run`, `principal`, `answer`.
run_of_task_answered = Signal()
