"""The Django models of runs: runs, steps, events, tasks, the queue, webhooks and totals."""

from runs.models.conversations import (
    MessageRole,
    Task,
    TaskEvent,
    TaskMessage,
    TaskOrigin,
    TaskStatus,
    TaskTicket,
)
from runs.models.journal import UNFINISHED, OpenCall, RunEvent, RunSecret, RunStep, StepStatus
from runs.models.notices import WaitingEmail
from runs.models.queue import KeyedCall, RunKey, ServiceBeat, Slot, Worker
from runs.models.run import (
    ACTIVE,
    ANSWER,
    APPROVED,
    DEVELOPER_TARGET,
    HOST_ACTION,
    RETRIABLE,
    SUBMITTED,
    TERMINAL,
    TRACE,
    Run,
    RunStatus,
    RunTerms,
)
from runs.models.saved_views import SavedView
from runs.models.statistics import EndedRun, LoadSample, RunStatistic
from runs.models.totals import RunTotal, RunTotalChange
from runs.models.webhooks import (
    BEING_SENT,
    DeliveryStatus,
    Webhook,
    WebhookDelivery,
    delivery_id,
)

__all__ = [
    "ACTIVE",
    "ANSWER",
    "APPROVED",
    "BEING_SENT",
    "DEVELOPER_TARGET",
    "HOST_ACTION",
    "RETRIABLE",
    "SUBMITTED",
    "TERMINAL",
    "TRACE",
    "UNFINISHED",
    "DeliveryStatus",
    "EndedRun",
    "KeyedCall",
    "LoadSample",
    "MessageRole",
    "OpenCall",
    "Run",
    "RunEvent",
    "RunKey",
    "RunSecret",
    "RunStatistic",
    "RunStatus",
    "RunStep",
    "RunTerms",
    "RunTotal",
    "RunTotalChange",
    "SavedView",
    "ServiceBeat",
    "Slot",
    "StepStatus",
    "Task",
    "TaskEvent",
    "TaskMessage",
    "TaskOrigin",
    "TaskStatus",
    "TaskTicket",
    "WaitingEmail",
    "Webhook",
    "WebhookDelivery",
    "Worker",
    "delivery_id",
]
