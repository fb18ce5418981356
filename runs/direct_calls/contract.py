"""The schemas of the calls about tools (runners.md, "Tools")."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
_TEXT: Schema = {"type": "string"}

CALL_INPUT: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 128},
        "args": {"type": "object", "description": "As the tool's inputSchema says."},
        "targetId": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "description": "Where it is executed; the default target of the tool's kind otherwise.",
        },
        "timeoutMs": {"type": "integer", "minimum": 1, "maximum": 300_000},
        "idempotencyKey": {
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "pattern": "^[^\\u0000-\\u001f\\u007f]*$",
            "description": "Names this call: for 24 hours it is made once under its key, and"
            " answered again; once a person confirmed it, the same key performs it.",
        },
    },
    "required": ["name"],
    "additionalProperties": False,
}
CALL_BODY: Schema = {
    **CALL_INPUT,
    "properties": {key: value for key, value in CALL_INPUT["properties"].items() if key != "name"},
    "required": [],
}
CALL_OUTPUT: Schema = {
    "type": "object",
    "properties": {
        "ok": {"const": True},
        "output": {"description": "As the tool's outputSchema says; of a runner's any value."},
        "callId": {"type": "string", "description": "What the audit log names the call."},
        "runId": {"type": "string", "description": "The run that carried it, where one did."},
        "artifactIds": {"type": "array", "items": _TEXT},
        "truncated": {
            "type": "boolean",
            "description": "Of a runner's tool: the output is shortened; artifactId has the whole.",
        },
        "artifactId": _TEXT,
        "fellBackFrom": {
            "type": "string",
            "description": "The runner that was not reached; our own tool of that name did it.",
        },
    },
    "required": ["ok", "output", "callId"],
    "additionalProperties": False,
}
S4_PROBLEM: Schema = {
    "type": "object",
    "description": "The shape of every error of a workspace tool (S4 §0.2).",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "string", "examples": ["E_NOT_FOUND"]},
                "message": _TEXT,
                "details": {"type": "object"},
                "hint": _TEXT,
                "recoverable": {"type": "boolean"},
            },
            "required": ["code", "message", "recoverable"],
            "additionalProperties": False,
        }
    },
    "required": ["error"],
    "additionalProperties": False,
}
_TARGET: Schema = {
    "type": "object",
    "properties": {
        "targetId": _TEXT,
        "name": _TEXT,
        "isDefault": {"type": "boolean"},
        "enabled": {"type": "boolean"},
        "policy": {
            "type": "string",
            "enum": ["allow", "confirm", "deny"],
            "description": "Of a runner: what policy says of the caller's calls of the tool there;"
            " confirm: a person is asked first.",
        },
    },
    "required": ["targetId", "name", "isDefault", "enabled"],
    "additionalProperties": False,
}
_TOOL: Schema = {
    "type": "object",
    "properties": {
        "name": _TEXT,
        "kind": _TEXT,
        "description": _TEXT,
        "effect": {"type": "string", "enum": ["read", "write", "external"]},
        "risk": {
            "type": "string",
            "enum": ["low", "medium", "high"],
            "description": "low changes nothing, medium can be undone here, high acts elsewhere. Of"
            " a runner's tool as the runner says, and high where it says nothing.",
        },
        "developer": {"type": "boolean", "description": "Only for developer mode."},
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object"},
        "targets": {
            "type": "array",
            "items": _TARGET,
            "description": "Those that a call may name; browsers are the workers' own. Of kind"
            " docker-runner: every runner that offers the tool, the default one first.",
        },
    },
    "required": ["name", "kind", "description", "effect", "risk", "inputSchema", "targets"],
    "additionalProperties": False,
}
TOOLS_OUTPUT: Schema = {
    "type": "object",
    "properties": {"tools": {"type": "array", "items": _TOOL}},
    "required": ["tools"],
    "additionalProperties": False,
}
