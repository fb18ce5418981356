"""Named schemas and examples of runs for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from artifacts.api.schemas import ARTIFACT_LIST
from decisions.foundation.validation.json_schema import closed, page_schema
from decisions.rest_base.openapi import component
from runs.api.schemas import runs as schemas

RUN = component("Run", schemas.RUN_OUTPUT)
RUN_LIST = component("RunList", page_schema("runs", RUN))
SUBMIT_BODY = component("Submit", schemas.RUN_TASK_TEMPLATE_INPUT)
SUBMITTED = component("SubmittedRun", schemas.RUN_TASK_TEMPLATE_OUTPUT)
TEMPLATES = component("TemplateList", schemas.LIST_TASK_TEMPLATES_OUTPUT)
CHANGED = component("ChangedRun", schemas.CANCEL_TASK_RUN_OUTPUT)
EVENT_PAGE = component("EventPage", schemas.SUBSCRIBE_OUTPUT)
ARTIFACTS = component("ArtifactList", ARTIFACT_LIST)
PROFILE = component("RuntimeProfile", schemas.RUNTIME_PROFILE_OUTPUT)
ANSWER_BODY = component(
    "Answer", closed({"answer": schemas.ANSWER_TASK_RUN_INPUT["properties"]["answer"]})
)

_RUN_ID = "run_01kb3x5h7c9v2m4q8t6w0y1z3a"

SUBMIT_EXAMPLE: dict[str, Any] = {
    "templateId": "batch_extract_pages",
    "inputs": {"urls": ["https://example.com/"]},
    "options": {"mode": "async", "idempotencyKey": "example-page-1"},
}
SUBMITTED_EXAMPLE: dict[str, Any] = {
    "runId": _RUN_ID,
    "sessionId": "sess_01kb3x5h7cf3n8r5x2k9p4d7gb",
    "status": "queued",
    "mode": "async",
    "deduplicated": False,
}
RUN_EXAMPLE: dict[str, Any] = {
    "runId": _RUN_ID,
    "templateId": "batch_extract_pages",
    "sessionId": SUBMITTED_EXAMPLE["sessionId"],
    "ownsSession": True,
    "status": "succeeded",
    "progress": {"doneSteps": 1, "totalSteps": 1},
    "metrics": {"elapsedMs": 812},
    "result": {
        "summary": {"total": 1, "succeeded": 1, "failed": 0},
        "items": [{"url": "https://example.com/", "title": "Example Domain", "success": True}],
    },
    "error": None,
    "artifactIds": ["art_01kb3x5j2e6s9w1z4b7f0h3k5m"],
    "createdAt": 1790000000000,
    "updatedAt": 1790000000900,
    "mode": "async",
    "templateVersion": "1.0.0",
    "attempt": 1,
    "resultSummary": "1 of 1 pages read.",
}
EVENTS_EXAMPLE: dict[str, Any] = {
    "events": [
        {"seq": 1, "type": "run.queued", "at": 1790000000000, "data": {"totalSteps": 1}},
        {"seq": 2, "type": "run.started", "at": 1790000000040, "data": {"attempt": 1}},
    ],
    "lastSeq": 2,
    "terminal": False,
}
CANCELED_EXAMPLE: dict[str, Any] = {"success": True, "runId": _RUN_ID, "status": "canceled"}
ENDED_EXAMPLE: dict[str, Any] = {**RUN_EXAMPLE, "deduplicated": True, "inputsMatch": True}
