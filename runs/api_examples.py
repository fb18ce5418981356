"""What the API's documentation shows: calls as somebody would make them, and their answers."""

from __future__ import annotations

from typing import Any

RUN_ID = "run_01kb3x5h7c9v2m4q8t6w0y1z3a"

SUBMIT: dict[str, Any] = {
    "templateId": "batch_extract_pages",
    "inputs": {"urls": ["https://example.com/"]},
    "options": {"mode": "async", "idempotencyKey": "example-page-1"},
}
SUBMITTED: dict[str, Any] = {
    "runId": RUN_ID,
    "sessionId": "sess_01kb3x5h7cf3n8r5x2k9p4d7gb",
    "status": "queued",
    "mode": "async",
    "deduplicated": False,
}
RUN: dict[str, Any] = {
    "runId": RUN_ID,
    "templateId": "batch_extract_pages",
    "sessionId": SUBMITTED["sessionId"],
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
EVENTS: dict[str, Any] = {
    "events": [
        {"seq": 1, "type": "run.queued", "at": 1790000000000, "data": {"totalSteps": 1}},
        {"seq": 2, "type": "run.started", "at": 1790000000040, "data": {"attempt": 1}},
    ],
    "lastSeq": 2,
    "terminal": False,
}
EVENT_STREAM = (
    'id: 1\ndata: {"seq":1,"type":"run.queued","at":1790000000000,"data":{"totalSteps":1}}\n\n'
)
CANCELED: dict[str, Any] = {"success": True, "runId": RUN_ID, "status": "canceled"}
