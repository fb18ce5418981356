"""JSON Schemas of the calls about targets: camelCase, no unknown fields; times are Unix
milliseconds.
"""

from __future__ import annotations

from typing import Any

from decisions.foundation.validation.json_schema import (
    ID,
    MS,
    MS_OR_NULL,
    PAGE_PROPERTIES,
    Schema,
    closed,
)
from runners.models import TargetKind
from runners.targets.runner_config import ON_UNREACHABLE

_KIND: Schema = {"type": "string", "enum": [str(kind) for kind in TargetKind.values]}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_CONFIG: Schema = {
    "type": "object",
    "description": "For a docker-runner: timeoutMs (default 15000, at most 180000), onUnreachable"
    f" ({' or '.join(ON_UNREACHABLE)}), endpoint, and tools, a list of {{name, description?,"
    " inputSchema?} for a runner that publishes none. For a workspace: root. For both: agents,"
    " a list of principals (local, token:ID) whose calls without a target go to it. No secrets.",
}
_WRITABLE: Schema = {
    "name": {"type": "string", "minLength": 1, "maxLength": 128},
    "endpoint": {
        **_TEXT_OR_NULL,
        "maxLength": 500,
        "description": "URL to which calls are POSTed: a public address, or one that"
        " CONTINUITY_EGRESS_ALLOW allows.",
    },
    "authToken": {
        **_TEXT_OR_NULL,
        "maxLength": 4096,
        "description": "Sent to the runner as a bearer token, stored encrypted, never returned."
        " Omitted: unchanged; null: none.",
    },
    "isDefault": {
        "type": "boolean",
        "default": False,
        "description": "Used by calls that name no target.",
    },
    "enabled": {"type": "boolean", "default": True},
    "config": _CONFIG,
}

LIST_INPUT: Schema = closed({"kind": _KIND, **PAGE_PROPERTIES}, [])
CREATE_INPUT: Schema = closed({"kind": _KIND, **_WRITABLE}, ["kind", "name"])
ID_INPUT: Schema = closed({"targetId": ID}, ["targetId"])
_VERSION: Schema = {
    "type": "integer",
    "minimum": 1,
    "maximum": 2**31 - 1,
    "description": "The version that was read; if it is another one, the response is 409.",
}
REPLACE_BODY: Schema = closed({**_WRITABLE, "version": _VERSION}, ["name"])
REPLACE_INPUT: Schema = closed({"targetId": ID, **REPLACE_BODY["properties"]}, ["targetId", "name"])

_FIELDS: Schema = {
    "targetId": ID,
    "tenantId": ID,
    "workspaceId": {**_TEXT_OR_NULL, "description": "null: all workspaces of the tenant."},
    "kind": _KIND,
    "name": {"type": "string"},
    "endpoint": _TEXT_OR_NULL,
    "hasAuthToken": {"type": "boolean"},
    "isDefault": {"type": "boolean"},
    "enabled": {"type": "boolean"},
    "config": _CONFIG,
    "version": {"type": "integer", "minimum": 1, "description": "Incremented by every change."},
    "createdAt": MS,
    "updatedAt": MS,
    "lastSeenAt": {**MS_OR_NULL, "description": "When its runner last answered a probe."},
    "probedAt": {**MS_OR_NULL, "description": "When its runner was last probed."},
    "probeError": {**_TEXT_OR_NULL, "description": "Why that probe got no response."},
    "tools": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Names of the tools that its runner published (schemas: GET /tools).",
    },
    "toolsError": {**_TEXT_OR_NULL, "description": "Why that probe could not read them."},
}
TARGET: Schema = closed(_FIELDS, list(_FIELDS))
DELETED: Schema = closed({"success": {"type": "boolean"}, "targetId": ID}, ["success", "targetId"])
NEW_EXAMPLE: dict[str, Any] = {
    "kind": "docker-runner",
    "name": "build machine",
    "endpoint": "https://runner.example.com/execute",
    "authToken": "…",
    "config": {"timeoutMs": 60_000, "onUnreachable": "deny"},
}
EXAMPLE: dict[str, Any] = {
    "targetId": "target_01kb3x5h7cf3n8r5x2k9p4d7gb",
    "tenantId": "ten_01kb3x5h7c1a2b3c4d5e6f7g8h",
    "workspaceId": "ws_01kb3x5h7c1a2b3c4d5e6f7g8j",
    "kind": "docker-runner",
    "name": "build machine",
    "endpoint": "https://runner.example.com/execute",
    "hasAuthToken": True,
    "isDefault": False,
    "enabled": True,
    "config": {"timeoutMs": 60000, "onUnreachable": "deny"},
    "version": 1,
    "createdAt": 1790000000000,
    "updatedAt": 1790000000000,
    "lastSeenAt": 1790000060000,
    "probedAt": 1790000060000,
    "probeError": None,
    "tools": ["bash.exec", "echo"],
    "toolsError": None,
}
