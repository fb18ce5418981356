"""JSON Schemas of POST /chat, the same for MCP and REST; names as in S2."""

from __future__ import annotations

from decisions.api.schemas.continuity import NUMBER, OBJECT, USER_ID, open_object
from decisions.foundation.validation.json_schema import BOOL, TEXT, Schema, closed
from decisions.models.chat import MESSAGE_BYTES

_OR_NULL: Schema = {"type": ["string", "null"]}
_TEXTS: Schema = {"type": "array", "items": TEXT}

CHAT_INPUT = closed(
    {
        "user_id": USER_ID,
        "message": {
            "type": "string",
            "minLength": 1,
            "maxLength": MESSAGE_BYTES,
            "description": "The user's request in their own words; at most 64 KiB.",
        },
        "idempotency_key": {
            "type": "string",
            "maxLength": 255,
            "description": "The same key with the same body returns the same response for 24"
            " hours, without the confirm token.",
        },
        "session_id": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "pattern": r"^[^\s/\\\x00-\x1f\x7f]+$",
            "description": "The conversation: from an earlier response, or your own id; new if"
            " left out.",
        },
        "slots": {
            "type": "object",
            "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"},
            "additionalProperties": {
                "type": ["string", "number", "boolean"],
                "maxLength": 2000,
            },
            "maxProperties": 32,
            "description": "What is known already, such as environment, target or success_criteria"
            " of an execution; no question is asked about it.",
        },
    },
    ["user_id", "message", "idempotency_key"],
)

_DECISION = open_object(
    dict.fromkeys(
        ("score", "predicted_gain", "predicted_risk", "memory_penalty", "uncertainty_penalty"),
        NUMBER,
    )
)
_GATE = open_object({"hit": BOOL, "threshold": NUMBER, "reason": TEXT, "top": NUMBER})
_HIGH_RISK = open_object(
    {
        "required": BOOL,
        "confirmation_id": TEXT,
        "confirm_token": TEXT,
        "expires_at": TEXT,
        "confirm_endpoint": TEXT,
    },
    ["required"],
)
_REALITY = open_object(
    {
        "mode": {"type": "string", "enum": ["off", "low_intervention"]},
        "shell_bias_hit": BOOL,
        "intervention": {"type": "string", "enum": ["none", "hint"]},
        "question": _OR_NULL,
    }
)
_PATH = {
    **open_object({"object_id": TEXT, "name": TEXT, "retrieval_score": NUMBER}),
    "type": ["object", "null"],
}
_TRACE = open_object(
    {
        "trace_id": TEXT,
        "mode": {"type": "string", "enum": ["clarify_first", "act", "clarify", "confirm"]},
        "task_type": TEXT,
        "missing_slots": _TEXTS,
        "entry_id": {"type": "integer"},
        "decision_id": {"type": "integer"},
        "outcome_id": {"type": "integer"},
        "outcome_status": TEXT,
        "main_constraint": TEXT,
        "l4_gate": _GATE,
        "feature_penalty": NUMBER,
        "matched_failure_types": _TEXTS,
        "high_risk_confirmation": _HIGH_RISK,
        "reality_first": _REALITY,
        "best_success_path": _PATH,
        "continuity_failures": {"type": "array", "items": OBJECT},
    },
    ["trace_id", "mode", "task_type", "reality_first"],
)
CHAT_OUTPUT = open_object(
    {
        "session_id": TEXT,
        "response": TEXT,
        "asked_questions": _TEXTS,
        "decision": {**_DECISION, "type": ["object", "null"]},
        "decision_id": {"type": ["integer", "null"]},
        "user_state": {"type": ["object", "null"]},
        "trace": _TRACE,
    }
)
