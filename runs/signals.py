"""What the work tells whoever listens above it, inside the transaction in which it happened."""

from __future__ import annotations

from django.dispatch import Signal

# A run of a task changed: `change` (the `runs.changes.Transition` that was written).
run_of_task_changed = Signal()

# A run of a task was answered at its own door: `run`, `answer`, `principal`.
run_of_task_answered = Signal()
