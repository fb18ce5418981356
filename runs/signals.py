"""Signals of runs to the packages above; sent inside the transaction of the change."""

from __future__ import annotations

from django.dispatch import Signal

# A run of a task changed. Sends `change`, the `runs.lifecycle.changes.Transition` written.
run_of_task_changed = Signal()

# A run of a task was answered through another API than the task's. Sends `run`, `principal` and
# `answer`.
run_of_task_answered = Signal()
