"""The request body of S3 §3, which a gateway sends with every call.

Unknown fields are ignored, so a newer gateway can send more; a tool refuses unknown arguments.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from decisions.foundation.errors import BodyTooLarge, MalformedBody
from decisions.foundation.validation.json_input import CALL_LIMIT, load_json
from decisions.foundation.validation.model_errors import first_error
from runners.docker_runner.refusals import InvalidRequest, RunnerBodyTooLarge

MAX_BYTES = CALL_LIMIT
_Name = Field(min_length=1, max_length=256)


class _Open(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class Call(_Open):
    """The tool and its arguments."""

    name: str = _Name
    args: dict[str, Any]


class EnvelopeContext(_Open):
    """The run and session of the call, for the log."""

    run_id: str = Field(alias="runId", min_length=1, max_length=256)
    session_id: str = Field(alias="sessionId", min_length=1, max_length=256)
    runtime_mode: str = Field(alias="runtimeMode", min_length=1, max_length=256)
    tool_call_id: str | None = Field(None, alias="toolCallId", max_length=256)


class Target(_Open):
    """The gateway's target that this runner is."""

    target_id: str = Field(alias="targetId", min_length=1, max_length=256)
    kind: Literal["docker-runner"]
    tenant_id: str = Field(alias="tenantId", min_length=1, max_length=256)
    workspace_id: str | None = Field(None, alias="workspaceId", max_length=256)


class Envelope(_Open):
    """A request to execute a tool call."""

    call: Call
    ctx: EnvelopeContext
    target: Target


def read_envelope(raw: bytes) -> Envelope:
    """Parse a request body.

    Raises:
        RunnerBodyTooLarge, InvalidRequest: It is not a valid request.
    """
    try:
        return Envelope.model_validate(load_json(raw, limit=MAX_BYTES))
    except BodyTooLarge as error:
        raise RunnerBodyTooLarge(error.message) from None
    except MalformedBody as error:
        raise InvalidRequest(error.message) from None
    except ValidationError as error:
        raise InvalidRequest(first_error(error, whole="the value")) from None
