"""JSON Schemas and the error body of the Continuity API except chat, the same for MCP and REST;
names as in S2.

Inputs are closed. Responses are open at every level, so that clients accept fields that are added
later (S2 §7).
"""

from __future__ import annotations

from decisions.foundation.errors import InvalidInput, Refused
from decisions.foundation.validation.json_schema import BOOL, TEXT, Schema, closed
from decisions.identity.principals import USER_ID_PATTERN
from decisions.models import Axis, ObjectType, OutcomeStatus

AXES = tuple(Axis.values)
USER_ID: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 128,
    "pattern": USER_ID_PATTERN,
    "description": "The user; the token must be allowed to act for them.",
}
FAILURE_TYPES = ("data_loss", "repeat_error", "context_loss", "system_error", "high_risk")


def open_object(properties: Schema, required: list[str] | None = None) -> Schema:
    """Return the schema of an object with at least these fields; by default all are required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
    }


def body_of(schema: Schema, *in_path: str) -> Schema:
    """Return the schema of a REST body: the input without user_id and the arguments in the path."""
    excluded = {"user_id", *in_path}
    properties = {n: one for n, one in schema["properties"].items() if n not in excluded}
    return closed(properties, [name for name in schema["required"] if name not in excluded])


NUMBER: Schema = {"type": "number"}
OBJECT: Schema = {"type": "object"}
DECISION_ID: Schema = {
    "type": "integer",
    "minimum": 1,
    "maximum": 2**53 - 1,
    "description": "decision_id of the response of continuity_chat.",
}
KEY: Schema = {
    "type": "string",
    "maxLength": 255,
    "description": "Idempotency key: the same call with the same key is carried out once in 24 h.",
}
_LEVEL: Schema = {"type": "string", "enum": ["high", "medium", "low"]}
_VALIDITY: Schema = {"type": "string", "enum": ["long", "medium", "short"]}
_SHORT_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": 2000}
_SLOT_NAME: Schema = {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"}
_IF_MATCH: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "description": "The current version to replace; version_conflict if the object has another.",
}
_PROCEDURE_STEP = closed(
    {
        "tool": {"type": "string", "minLength": 1, "maxLength": 128},
        "args": {**OBJECT, "description": "${slot} in a text is replaced by the slot's value."},
        "name": {"type": "string", "minLength": 1, "maxLength": 200},
    },
    ["tool", "args"],
)
PROCEDURE: Schema = {
    "description": "A text for people, or steps that replay_success_path can run.",
    "anyOf": [
        {"type": "string", "minLength": 1, "maxLength": 20_000},
        {"type": "array", "items": _PROCEDURE_STEP, "minItems": 1, "maxItems": 100},
    ],
}
_CRITERIA: Schema = {**_SHORT_TEXT, "description": "How to tell that it worked."}
_IMPACT = closed({axis: {"type": "number", "minimum": -1, "maximum": 1} for axis in AXES}, [])

STATE_INPUT = closed({"user_id": USER_ID})
LIST_OBJECTS_INPUT = closed(
    {
        "user_id": USER_ID,
        "type": {"type": "string", "enum": list(ObjectType.values)},
        "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
    },
    ["user_id"],
)
PUT_SHELL_INPUT = closed(
    {
        "user_id": USER_ID,
        "social_interface": {**OBJECT, "description": "How the person interacts with others."},
        "narratives": {**OBJECT, "description": "How the person describes themselves."},
        "confidence": _LEVEL,
        "validity": _VALIDITY,
        "source": {"type": "string", "enum": ["user", "inferred"]},
        "evidence": {
            "type": "string",
            "maxLength": 4000,
            "description": "The basis of an inferred Shell; required for those.",
        },
        "idempotency_key": KEY,
        "if_match": _IF_MATCH,
    },
    ["user_id", "social_interface", "narratives", "confidence", "validity", "source"],
)
PUT_SUCCESS_PATH_INPUT = closed(
    {
        "user_id": USER_ID,
        "name": {"type": "string", "minLength": 1, "maxLength": 128},
        "intent": _SHORT_TEXT,
        "required_slots": {"type": "array", "items": _SLOT_NAME, "maxItems": 50},
        "slot_definitions": {
            "type": "object",
            "propertyNames": _SLOT_NAME,
            "additionalProperties": {"type": ["string", "object"]},
            "maxProperties": 50,
            "description": "Slot name -> its meaning: a text, or {description, …}.",
        },
        "procedure": PROCEDURE,
        "success_criteria": _CRITERIA,
        "confidence": _LEVEL,
        "validity": _VALIDITY,
        "tags": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": 64},
            "maxItems": 20,
        },
        "idempotency_key": KEY,
        "if_match": _IF_MATCH,
    },
    [
        "user_id",
        "name",
        "intent",
        "required_slots",
        "slot_definitions",
        "procedure",
        "success_criteria",
        "confidence",
        "validity",
        "tags",
    ],
)
OUTCOME_INPUT = closed(
    {
        "decision_id": DECISION_ID,
        "user_id": USER_ID,
        "outcome_status": {"type": "string", "enum": list(OutcomeStatus.values)},
        "outcome_note": {"type": "string", "maxLength": 4000},
        "system_caused": {**BOOL, "description": "The system caused the result, not the plan."},
        "failure_type": {
            "type": ["string", "null"],
            "enum": [*FAILURE_TYPES, None],
            "description": "The kind of failure, for failed or partial.",
        },
        "actual_impact_vector": {
            **_IMPACT,
            "description": "The actual change of each axis, -1 (used up) to 1 (gained much).",
        },
        "actual_cost": {"type": "number", "minimum": 0, "maximum": 10},
        "procedure": PROCEDURE,
        "success_criteria": _CRITERIA,
    },
    ["decision_id", "user_id", "outcome_status", "outcome_note"],
)

CONFIRM_INPUT = closed(
    {
        "decision_id": DECISION_ID,
        "user_id": USER_ID,
        "confirm_token": {
            "type": "string",
            "minLength": 1,
            "maxLength": 512,
            "description": "trace.high_risk_confirmation.confirm_token of the same response.",
        },
    }
)
# Over REST a credential with the scope `confirm` needs no token.
CONFIRM_INPUT_REST = closed(
    {
        **CONFIRM_INPUT["properties"],
        "shown_digest": {
            "type": "string",
            "pattern": "^[0-9a-f]{64}$",
            "description": "The digest of what the person was shown; with another one nothing is"
            " confirmed.",
        },
    },
    ["decision_id", "user_id"],
)
CONFIRM_OUTPUT = open_object(
    {
        "ok": {"type": "boolean", "const": True},
        "decision_id": DECISION_ID,
        "user_id": TEXT,
        "confirmed": BOOL,
        "message": TEXT,
    }
)

_AXIS = open_object(
    {"value": NUMBER, "confidence": NUMBER, "updated_at": {"type": ["string", "null"]}}
)
STATE_OUTPUT = open_object(
    {
        "user_id": TEXT,
        "axes": open_object(dict.fromkeys(AXES, _AXIS)),
        "main_constraint": {"type": "string", "enum": list(AXES)},
    }
)
ITEM = open_object(
    {
        "object_id": TEXT,
        "object_type": {"type": "string", "enum": list(ObjectType.values)},
        "name": TEXT,
        "payload": OBJECT,
        "confidence": _LEVEL,
        "validity": _VALIDITY,
        "updated_at": TEXT,
        "version": {"type": "integer", "minimum": 1, "description": "The value for if_match."},
    }
)
LIST_OBJECTS_OUTPUT = open_object(
    {"items": {"type": "array", "items": ITEM}, "count": {"type": "integer", "minimum": 0}}
)
PUT_OBJECT_OUTPUT = open_object({"ok": {"type": "boolean", "const": True}, "item": ITEM})
LATEST_SHELL_OUTPUT = open_object({"item": {**ITEM, "type": ["object", "null"]}})
OUTCOME_OUTPUT = open_object(
    {
        "decision_id": DECISION_ID,
        "outcome_id": {"type": "integer"},
        "outcome_status": {"type": "string", "enum": list(OutcomeStatus.values)},
        "outcome_note": TEXT,
        "system_caused": BOOL,
        "failure_type": {"type": ["string", "null"]},
        "created_at": TEXT,
    }
)


VALIDATION_ERROR = "validation_error"


def as_continuity_error(refusal: Refused) -> dict[str, str]:
    """Return a refusal as {code, detail}; codes that S2 does not define are ours in lower case."""
    code = VALIDATION_ERROR if refusal.code == InvalidInput.code else refusal.code.lower()
    return {"code": code, "detail": refusal.message}
