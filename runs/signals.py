"""What the work tells whoever listens above it, inside the transaction in which it happened."""

from __future__ import annotations

from django.dispatch import Signal

# A run of a task changed: `change` (the `runs.changes.Transition` that was written).
run_of_task_changed = Signal()
