"""S2's calls on state, objects and outcomes as JSON Schemas, the same for MCP and REST: closed
inputs, snake_case, names exactly the seed's.

Answers are open at every level: what the back end adds later passes through every door untouched
(S2 §7).
"""

from __future__ import annotations

from decisions.continuity.shared import USER_ID
from decisions.models import Axis, ObjectType, OutcomeStatus
from decisions.validation.json_schema import Schema, closed

AXES = tuple(Axis.values)
FAILURE_TYPES = ("data_loss", "repeat_error", "context_loss", "system_error", "high_risk")


def answer(properties: Schema, required: list[str] | None = None) -> Schema:
    """Return the schema of an object that has at least these fields."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
    }


def body_of(schema: Schema, *elsewhere: str) -> Schema:
    """Return what of an input stands in a body: all but the user, and what is named."""
    left_out = {"user_id", *elsewhere}
    properties = {n: one for n, one in schema["properties"].items() if n not in left_out}
    return closed(properties, [name for name in schema["required"] if name not in left_out])


TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
BOOL: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
DECISION_ID: Schema = {
    "type": "integer",
    "minimum": 1,
    "maximum": 2**53 - 1,
    "description": "decision_id of the answer to continuity_chat.",
}
KEY: Schema = {
    "type": "string",
    "maxLength": 255,
    "description": "The same key with the same call again does nothing twice, for 24 hours.",
}
_LEVEL: Schema = {"type": "string", "enum": ["high", "medium", "low"]}
_VALIDITY: Schema = {"type": "string", "enum": ["long", "medium", "short"]}
_SHORT_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": 2000}
_SLOT_NAME: Schema = {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"}
_IF_MATCH: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "description": "The version that this is to replace, as read; else version_conflict.",
}
_PROCEDURE_STEP = closed(
    {
        "tool": {"type": "string", "minLength": 1, "maxLength": 128},
        "args": {**OBJECT, "description": "A text ${slot} is filled in from the slots."},
        "name": {"type": "string", "minLength": 1, "maxLength": 200},
    },
    ["tool", "args"],
)
PROCEDURE: Schema = {
    "description": "How it is done: a text for people, or steps that replay_success_path can run.",
    "anyOf": [
        {"type": "string", "minLength": 1, "maxLength": 20_000},
        {"type": "array", "items": _PROCEDURE_STEP, "minItems": 1, "maxItems": 100},
    ],
}
_CRITERIA: Schema = {**_SHORT_TEXT, "description": "By what one sees that it worked."}
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
        "social_interface": {**OBJECT, "description": "How others meet this person."},
        "narratives": {**OBJECT, "description": "What the person tells of themselves."},
        "confidence": _LEVEL,
        "validity": _VALIDITY,
        "source": {"type": "string", "enum": ["user", "inferred"]},
        "evidence": {
            "type": "string",
            "maxLength": 4000,
            "description": "What an inferred Shell rests on; required then.",
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
            "description": "What each slot means, by its name: a text, or {description, …}.",
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
        "system_caused": {**BOOL, "description": "The system was at fault, not the plan."},
        "failure_type": {
            "type": ["string", "null"],
            "enum": [*FAILURE_TYPES, None],
            "description": "Of what kind, for failed or partial.",
        },
        "actual_impact_vector": {
            **_IMPACT,
            "description": "What it did to each axis, -1 (cost all) to 1 (gave much).",
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
            "description": "trace.high_risk_confirmation.confirm_token of the same answer.",
        },
    }
)
# Over REST a credential with the scope `confirm` needs no token.
CONFIRM_INPUT_REST = {**CONFIRM_INPUT, "required": ["decision_id", "user_id"]}
CONFIRM_OUTPUT = answer(
    {
        "ok": {"const": True},
        "decision_id": DECISION_ID,
        "user_id": TEXT,
        "confirmed": BOOL,
        "message": TEXT,
    }
)

_AXIS = answer({"value": NUMBER, "confidence": NUMBER, "updated_at": {"type": ["string", "null"]}})
STATE_OUTPUT = answer(
    {
        "user_id": TEXT,
        "axes": answer(dict.fromkeys(AXES, _AXIS)),
        "main_constraint": {"type": "string", "enum": list(AXES)},
    }
)
ITEM = answer(
    {
        "object_id": TEXT,
        "object_type": {"type": "string", "enum": list(ObjectType.values)},
        "name": TEXT,
        "payload": OBJECT,
        "confidence": _LEVEL,
        "validity": _VALIDITY,
        "updated_at": TEXT,
        "version": {"type": "integer", "minimum": 1, "description": "What If-Match names."},
    }
)
LIST_OBJECTS_OUTPUT = answer(
    {"items": {"type": "array", "items": ITEM}, "count": {"type": "integer", "minimum": 0}}
)
PUT_OBJECT_OUTPUT = answer({"ok": {"const": True}, "item": ITEM})
LATEST_SHELL_OUTPUT = answer({"item": {**ITEM, "type": ["object", "null"]}})
OUTCOME_OUTPUT = answer(
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
