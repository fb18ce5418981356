"""Export the evidence of one run over REST, as a file."""

from __future__ import annotations

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from decisions.audit.bundle import JSON_LINES, file_headers, in_batches
from decisions.foundation.infra.threads import in_thread
from decisions.foundation.validation.json_schema import closed
from decisions.rest_base.arguments import RequestArguments
from decisions.rest_base.openapi import READ_REFUSALS, operation
from decisions.rest_base.view import ApiView, principal_of
from runs.queries.evidence import EVIDENCE_NAME, export_evidence

EVIDENCE_INPUT = closed(
    {
        "runId": {"type": "string", "minLength": 1, "maxLength": 64},
        "contents": {
            "type": "string",
            "enum": ["true", "false"],
            "default": "false",
            "description": "Include the bytes of artifacts (needs the scope artifacts:read).",
        },
    },
    ["runId"],
)
_INPUT = RequestArguments(EVIDENCE_INPUT)


class EvidenceView(ApiView):
    """GET /runs/{runId}/evidence."""

    scopes = {"GET": "audit:read"}

    @operation(
        "exportEvidence",
        "The evidence of a run as one file",
        tag="audit",
        arguments=_INPUT,
        response={"type": "string"},
        path={"runId": "The run's id; a run past its TTL can be exported too."},
        media_types=(JSON_LINES,),
        refusals=READ_REFUSALS,
    )
    async def get(self, request: Request, **path: str) -> HttpResponseBase:
        """JSON lines: the run, its steps, events, artifacts and decisions, and its part of the
        audit log with the seals. `manage.py verify_audit --bundle FILE` verifies it. Also needs the
        scope runs:read.
        """
        args = self.arguments(_INPUT)
        lines = await in_thread(
            export_evidence,
            principal=principal_of(request),
            run_id=args["runId"],
            contents=args.get("contents") == "true",
        )
        return StreamingHttpResponse(
            in_batches(lines), headers=file_headers(EVIDENCE_NAME.format(args["runId"]))
        )
