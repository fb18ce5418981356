"""The types of a run's events (runs.md, "Events"); docs/events.md says what the data of each
holds.
"""

from __future__ import annotations

from enum import StrEnum


class EventType(StrEnum):
    """What a line of a run's log can tell. Agent runs alone write the last four (S1's words)."""

    RUN_QUEUED = "run.queued"
    RUN_STARTED = "run.started"
    RUN_WAITING = "run.waiting"
    RUN_RESUMED = "run.resumed"
    STEP_STARTED = "step.started"
    STEP_PROGRESS = "step.progress"
    STEP_SUCCEEDED = "step.succeeded"
    STEP_FAILED = "step.failed"
    STEP_RETRYING = "step.retrying"
    ARTIFACT_CREATED = "artifact.created"
    TOOL_UPDATE = "tool.update"
    TOOL_FELL_BACK = "tool.fell_back"
    RUN_SUCCEEDED = "run.succeeded"
    RUN_PARTIAL_SUCCESS = "run.partial_success"
    RUN_FAILED = "run.failed"
    RUN_CANCELED = "run.canceled"
    CHAT_DELTA = "chatDelta"
    TOOL_USED = "toolUsed"
    STRUCTURED_OUTPUT = "structuredOutput"
    STATUS_UPDATE = "statusUpdate"


# The last event of a run: nothing follows it.
FINAL = frozenset(
    {
        EventType.RUN_SUCCEEDED,
        EventType.RUN_PARTIAL_SUCCESS,
        EventType.RUN_FAILED,
        EventType.RUN_CANCELED,
    }
)
EVENT_TYPES = frozenset(EventType)
# Those that come by the hundred a second, and the field that is their text
# (runs.execution.event_buffer).
PIECES: dict[str, str] = {EventType.CHAT_DELTA: "content", EventType.TOOL_UPDATE: "delta"}

# What a task's log tells beside the events of its runs: something was said; how things are now;
# what a person did who has the page.
MESSAGE = "message"
SNAPSHOT_SYNC = "snapshotSync"
PERSON_ACTED = "personActed"
TASK_EVENT_TYPES: frozenset[str] = EVENT_TYPES | {MESSAGE, SNAPSHOT_SYNC, PERSON_ACTED}
