"""The types of run and task events; docs/events.md describes the data of each."""

from __future__ import annotations

from enum import StrEnum


class EventType(StrEnum):
    """The types of a run's events. Only agent runs write the last four, which have S1's names."""

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


# The last event of a run is one of these.
FINAL = frozenset(
    {
        EventType.RUN_SUCCEEDED,
        EventType.RUN_PARTIAL_SUCCESS,
        EventType.RUN_FAILED,
        EventType.RUN_CANCELED,
    }
)
EVENT_TYPES = frozenset(EventType)
# Streamed events, up to hundreds a second, and the field of their data that holds the text
# (runs.execution.event_buffer).
PIECES: dict[str, str] = {EventType.CHAT_DELTA: "content", EventType.TOOL_UPDATE: "delta"}

# Events of a task beside those of its runs: a new message; the task's present state, for a client
# that reconnects; what a person did on the page during a takeover.
MESSAGE = "message"
SNAPSHOT_SYNC = "snapshotSync"
PERSON_ACTED = "personActed"
TASK_EVENT_TYPES: frozenset[str] = EVENT_TYPES | {MESSAGE, SNAPSHOT_SYNC, PERSON_ACTED}
