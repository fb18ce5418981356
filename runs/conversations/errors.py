"""Errors of task requests (decisions/errors.py has the whole tree).

NotFound
└── TaskNotFound    unknown, or another workspace's
Conflict
└── TaskBusy        the task has a current run
"""

from __future__ import annotations

from decisions.errors import Conflict, NotFound


class TaskNotFound(NotFound):
    """No task with this id is visible to the caller."""

    code = "TASK_NOT_FOUND"
    recovery = "List the tasks, and use an id from there."


class TaskBusy(Conflict):
    """The task has a current run, and the message was sent with onBusy refuse."""

    code = "TASK_BUSY"
    retryable = True
    recovery = "Wait for the run's end, or send the message with onBusy queue or interrupt."
