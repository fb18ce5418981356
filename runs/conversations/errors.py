"""Errors of task requests (decisions/foundation/errors.py has the whole tree).

NotFound
└── TaskNotFound    unknown, or another workspace's
Conflict
└── TaskBusy        the task has a current run
    ├── PageTakenOver       a person has the page
    ├── SessionWaits        the session's last action waits for a person
    └── ActionUnfinished    the requested action has not ended yet
"""

from __future__ import annotations

from decisions.foundation.errors import Conflict, NotFound


class TaskNotFound(NotFound):
    """No task with this id is visible to the caller."""

    code = "TASK_NOT_FOUND"
    recovery = "List the tasks, and use an id from there."


class TaskBusy(Conflict):
    """The task has a current run, and the message was sent with onBusy refuse."""

    code = "TASK_BUSY"
    retryable = True
    recovery = "Wait for the run's end, or send the message with onBusy queue or interrupt."


class PageTakenOver(TaskBusy):
    """A person has taken over the page; nothing was submitted."""

    recovery = "Wait until the person has given the page back, then call again."


class SessionWaits(TaskBusy):
    """The session's last action waits for a person; nothing was submitted."""

    recovery = (
        "Have the person decide, and read the outcome with wait_task_run and details.runId; or"
        " cancel_task_run with it, which frees the session. Then call again."
    )


class ActionUnfinished(TaskBusy):
    """The requested browser action was submitted, and has not ended yet."""

    retryable = False
    recovery = (
        "wait_task_run with details.runId returns the outcome; cancel_task_run cancels the action."
        " Do not repeat the call."
    )
