"""What a caller may not do with tasks, or got wrong (decisions/errors.py has the tree).

NotFound
└── TaskNotFound    unknown, or another workspace's
Conflict
└── TaskBusy        a run of the task is under way
"""

from __future__ import annotations

from decisions.errors import Conflict, NotFound


class TaskNotFound(NotFound):
    """No task with this id is visible to the caller."""

    code = "TASK_NOT_FOUND"
    recovery = "List the tasks, and use an id from there."


class TaskBusy(Conflict):
    """A run of the task is under way, and the message was not to wait for its end."""

    code = "TASK_BUSY"
    retryable = True
    recovery = "Wait for the run's end, or send the message with onBusy queue or interrupt."
