"""JSON Schemas of listing and calling tools."""

from __future__ import annotations

from decisions.foundation.validation.json_schema import TEXT, Schema, closed

CALL_INPUT = closed(
    {
        "name": {"type": "string", "minLength": 1, "maxLength": 128},
        "args": {"type": "object", "description": "Arguments that fit the tool's inputSchema."},
        "targetId": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "description": "Where it is executed; by default the default target of its kind.",
        },
        "timeoutMs": {"type": "integer", "minimum": 1, "maximum": 300_000},
        "idempotencyKey": {
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "pattern": "^[^\\u0000-\\u001f\\u007f]*$",
            "description": "Within 24 hours a call is made once per key, and the same key again"
            " returns its outcome. Once a person has confirmed a call, the same key performs it.",
        },
    },
    ["name"],
)
CALL_BODY = closed(
    {key: value for key, value in CALL_INPUT["properties"].items() if key != "name"}, []
)
CALL_OUTPUT = closed(
    {
        "ok": {"const": True},
        "output": {"description": "Fits the tool's outputSchema; of a runner's tool any value."},
        "callId": {"type": "string", "description": "The call's id in the audit log."},
        "runId": {"type": "string", "description": "The run that performed it, if one did."},
        "artifactIds": {"type": "array", "items": TEXT},
        "truncated": {
            "type": "boolean",
            "description": "A runner's output was shortened; artifactId has the whole.",
        },
        "artifactId": TEXT,
        "fellBackFrom": {
            "type": "string",
            "description": "The unreachable runner; the local tool of that name did it instead.",
        },
    },
    ["ok", "output", "callId"],
)
S4_PROBLEM: Schema = {
    "type": "object",
    "description": "The shape of every error of a workspace tool (S4 §0.2).",
    "properties": {
        "error": closed(
            {
                "code": {"type": "string", "examples": ["E_NOT_FOUND"]},
                "message": TEXT,
                "details": {"type": "object"},
                "hint": TEXT,
                "recoverable": {"type": "boolean"},
            },
            ["code", "message", "recoverable"],
        )
    },
    "required": ["error"],
    "additionalProperties": False,
}
_TARGET = closed(
    {
        "targetId": TEXT,
        "name": TEXT,
        "isDefault": {"type": "boolean"},
        "enabled": {"type": "boolean"},
        "policy": {
            "type": "string",
            "enum": ["allow", "confirm", "deny"],
            "description": "For a runner: what policy decides about the caller's calls of the tool"
            " there; confirm means that a person has to confirm first.",
        },
    },
    ["targetId", "name", "isDefault", "enabled"],
)
_TOOL = closed(
    {
        "name": TEXT,
        "kind": TEXT,
        "description": TEXT,
        "effect": {"type": "string", "enum": ["read", "write", "external"]},
        "risk": {
            "type": "string",
            "enum": ["low", "medium", "high"],
            "description": "low changes nothing, medium can be undone here, high acts outside. Of a"
            " runner's tool as the runner published it, or high.",
        },
        "developer": {"type": "boolean", "description": "Only for developer mode."},
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object"},
        "targets": {
            "type": "array",
            "items": _TARGET,
            "description": "The targets that a call may name; none for tools of a worker's browser."
            " For kind docker-runner: every runner that offers the tool, the default one first.",
        },
    },
    ["name", "kind", "description", "effect", "risk", "inputSchema", "targets"],
)
TOOLS_OUTPUT = closed({"tools": {"type": "array", "items": _TOOL}})
