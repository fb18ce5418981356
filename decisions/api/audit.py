"""REST view of the audit log (S3's audit.query)."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from decisions.audit.query import list_audit_entries
from decisions.foundation.validation.json_schema import TEXT, closed
from decisions.rest_base.arguments import RequestArguments
from decisions.rest_base.openapi import component, operation
from decisions.rest_base.view import ApiView, json_response, principal_of

_YEAR_9999 = 253_402_300_799_999


def _filter(description: str, length: int) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": length, "description": description}


_MS = {"type": "integer", "minimum": 0, "maximum": _YEAR_9999}
AUDIT_QUERY_INPUT = closed(
    {
        "tenantId": _filter("Only this tenant's rows; another tenant gives none.", 64),
        "workspaceId": _filter("Only this workspace's rows; another workspace gives none.", 64),
        "action": _filter("Exactly this action: run.canceled, …", 64),
        "actor": _filter("Exactly this actor: local, token:tok_…, admin:NAME, worker:wrk_…", 160),
        "resourceId": _filter("The id of the resource: a run's id, …", 128),
        "from": {**_MS, "description": "Unix milliseconds, inclusive."},
        "to": {**_MS, "description": "Unix milliseconds, exclusive."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
        "cursor": {
            "type": "string",
            "pattern": "^[0-9]{1,18}$",
            "description": "nextCursor of the page before.",
        },
    },
    [],
)
AUDIT_QUERY_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "integer"},
                    "tenantId": TEXT,
                    "workspaceId": TEXT,
                    "action": TEXT,
                    "actor": TEXT,
                    "resourceType": TEXT,
                    "resourceId": TEXT,
                    "metadata": {},
                    "createdAt": {
                        "type": ["integer", "null"],
                        "description": "Unix milliseconds; null if the stored time is none.",
                    },
                },
            },
        },
        "nextCursor": {"type": ["string", "null"]},
    },
    "required": ["items", "nextCursor"],
}
_QUERY = RequestArguments(AUDIT_QUERY_INPUT)
_COLUMNS = {
    "tenantId": "tenant_id",
    "workspaceId": "workspace_id",
    "action": "action",
    "actor": "actor",
    "resourceId": "resource_id",
    "from": "since_ms",
    "to": "before_ms",
}
_EXAMPLE = {
    "items": [
        {
            "id": 4711,
            "tenantId": "ten_01kb3x5j2e6s9w1z4b7f0h3k5m",
            "workspaceId": "ws_01kb3x5j2e6s9w1z4b7f0h3k5m",
            "action": "run.canceled",
            "actor": "token:tok_01kb3x5j2e6s9w1z4b7f0h3k5m",
            "resourceType": "run",
            "resourceId": "run_01kb3x5h7c9v2m4q8t6w0y1z3a",
            "metadata": {"reason": "Not needed any more."},
            "createdAt": 1790000000000,
        }
    ],
    "nextCursor": "4711",
}


class AuditView(ApiView):
    """GET /audit."""

    scopes = {"GET": "audit:read"}

    @operation(
        "queryAudit",
        "Query the audit log",
        tag="audit",
        arguments=_QUERY,
        response=component("AuditPage", AUDIT_QUERY_OUTPUT),
        refusals=(400, 401, 403, 429),
        examples={200: _EXAMPLE},
    )
    def get(self, request: Request) -> HttpResponse:
        """The workspace's audit rows, newest first; all filters must match. For the next page send
        `cursor` = `nextCursor` until that is null; new rows do not shift the pages.
        """
        filters = {
            _COLUMNS.get(name, name): value for name, value in self.arguments(_QUERY).items()
        }
        return json_response(list_audit_entries(principal=principal_of(request), **filters))
