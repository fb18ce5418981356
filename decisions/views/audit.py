"""The audit log over REST (S3's audit.query)."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from decisions.api.arguments import RequestArguments
from decisions.api.openapi import component, operation
from decisions.api.view import ApiView, json_response, principal_of
from decisions.audit.query import list_audit_entries

_YEAR_9999 = 253_402_300_799_999
_TEXT = {"type": "string"}


def _named(told: str, length: int) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": length, "description": told}


_MS = {"type": "integer", "minimum": 0, "maximum": _YEAR_9999}
AUDIT_QUERY_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "tenantId": _named("Only this tenant's; another's reads as empty.", 64),
        "workspaceId": _named("Only this workspace's; another's reads as empty.", 64),
        "action": _named("Exactly this action: run.canceled, …", 64),
        "actor": _named("Exactly this actor: local, token:tok_…, admin:NAME, worker:wrk_…", 160),
        "resourceId": _named("What it is about: a run's id, …", 128),
        "from": {**_MS, "description": "From this moment on, in Unix milliseconds."},
        "to": {**_MS, "description": "Before this moment."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
        "cursor": {
            "type": "string",
            "pattern": "^[0-9]{1,18}$",
            "description": "The nextCursor of the page before.",
        },
    },
    "additionalProperties": False,
}
AUDIT_QUERY_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "integer"},
                    "tenantId": _TEXT,
                    "workspaceId": _TEXT,
                    "action": _TEXT,
                    "actor": _TEXT,
                    "resourceType": _TEXT,
                    "resourceId": _TEXT,
                    "metadata": {},
                    "createdAt": {"type": "integer", "description": "Unix milliseconds."},
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
        "What was done and refused",
        tag="audit",
        arguments=_QUERY,
        response=component("AuditPage", AUDIT_QUERY_OUTPUT),
        refusals=(400, 401, 403, 429),
        examples={200: _EXAMPLE},
    )
    def get(self, request: Request) -> HttpResponse:
        """The workspace's audit rows, newest first; filters are joined by "and". Rows that come in
        meanwhile move no page: go on with `cursor` = `nextCursor` until that is null.
        """
        asked = {_COLUMNS.get(name, name): value for name, value in self.arguments(_QUERY).items()}
        return json_response(list_audit_entries(principal=principal_of(request), **asked))
