"""Validation of a call's arguments, and the scope that a call needs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from django.conf import settings
from jsonschema_rs import Draft202012Validator, ValidationErrorKind
from pydantic import ValidationError

from decisions.foundation.errors import InvalidInput
from decisions.foundation.validation.json_schema import (
    check,
    compile_schema,
    first_errors,
    schema_of,
)
from decisions.foundation.validation.model_errors import first_error
from runners.actions.catalogue import UPLOAD
from runners.tools.base import Effect, Tool
from runners.tools.registry import get_tool
from runners.workspace.errors import BadArguments, PolicyViolation
from runners.workspace.hints import READ_HINTS

# A well-formed value outside of these enums and patterns is a policy violation (S4), not a bad
# argument.
_POLICY_FIELDS = {
    ("execute_command", "scriptName"): ValidationErrorKind.Enum,
    ("browser_action", "url"): ValidationErrorKind.Pattern,
}


def scope_of(tool: Tool) -> str:
    """Return the token scope that a call of the tool needs."""
    return "tools:read" if tool.effect == Effect.READ else "tools:write"


def further_scopes_of(tool: Tool) -> frozenset[str]:
    """Return the scopes that a call needs besides that one: an upload reads artifacts."""
    return frozenset({"artifacts:read"} if tool.name == UPLOAD.name else ())


def input_schema(tool: Tool) -> dict[str, Any]:
    """Return the JSON Schema of the tool's arguments."""
    return dict(tool.request) if tool.request is not None else schema_of(tool.input_model)


def check_args(tool: Tool, args: Mapping[str, Any]) -> dict[str, Any]:
    """Validate arguments and return them as the tool receives them, 5.0 as 5.

    Raises:
        BadArguments, PolicyViolation: The arguments of a workspace tool are invalid.
        InvalidInput: The arguments of another tool are invalid.
    """
    repaired = (
        dict(tool.repair_arguments(args)) if tool.repair_arguments is not None else dict(args)
    )
    validator = _validator(tool.name)
    try:
        if tool.request is None:  # the model's message is clearer than the schema's
            tool.input_model.model_validate(repaired)
        check(validator, repaired)
        tool.input_model.model_validate(repaired)
    except InvalidInput as refusal:
        if tool.kind != "workspace":
            raise
        if _is_policy(tool, validator, repaired):
            raise PolicyViolation(refusal.message, details=refusal.details) from None
        raise BadArguments(refusal.message, hint=_hint(), details=refusal.details) from None
    except ValidationError as error:
        raise _refusal(tool, error) from None
    return {name: _whole(value) for name, value in repaired.items()}


def _is_policy(tool: Tool, validator: Draft202012Validator, args: Mapping[str, Any]) -> bool:
    """Return whether all errors are policy violations."""
    for error in first_errors(validator, args):
        field = str(error.instance_path[0]) if error.instance_path else ""
        kind = _POLICY_FIELDS.get((tool.name, field))
        if kind is None or not isinstance(error.kind, kind):
            return False
        if not isinstance(args.get(field), str):
            return False
    return True


def _refusal(tool: Tool, error: ValidationError) -> BadArguments | InvalidInput:
    message = first_error(error)
    if tool.kind == "workspace":
        return BadArguments(message, hint=_hint())
    return InvalidInput(message)


def _hint() -> str:
    return READ_HINTS[BadArguments][settings.WORKSPACE_POLICY.language == "EN"]


@cache
def _validator(name: str) -> Draft202012Validator:
    tool = get_tool(name)
    if tool is None:
        raise LookupError(name)
    return compile_schema(input_schema(tool))


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
