"""The request of S3 §3: what a gateway sends with every call.

What is not known in it is let pass, so that a newer gateway can tell more; the arguments of a tool
are closed, and judged by the tool.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from decisions.errors import BodyTooLarge as TooManyBytes
from decisions.errors import MalformedBody
from decisions.validation.json_input import CALL_LIMIT, load_json
from runners.docker_runner.refusals import BodyTooLarge, InvalidRequest

MAX_BYTES = CALL_LIMIT
_Name = Field(min_length=1, max_length=256)


class _Open(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class Call(_Open):
    """What to do."""

    name: str = _Name
    args: dict[str, Any]


class CallContext(_Open):
    """For whom, as far as it is of use in a log."""

    run_id: str = Field(alias="runId", min_length=1, max_length=256)
    session_id: str = Field(alias="sessionId", min_length=1, max_length=256)
    runtime_mode: str = Field(alias="runtimeMode", min_length=1, max_length=256)
    tool_call_id: str | None = Field(None, alias="toolCallId", max_length=256)


class Target(_Open):
    """Which target of the gateway this runner is."""

    target_id: str = Field(alias="targetId", min_length=1, max_length=256)
    kind: Literal["docker-runner"]
    tenant_id: str = Field(alias="tenantId", min_length=1, max_length=256)
    workspace_id: str | None = Field(None, alias="workspaceId", max_length=256)


class Envelope(_Open):
    """A request."""

    call: Call
    ctx: CallContext
    target: Target


def read_envelope(raw: bytes) -> Envelope:
    """Return the request that the bytes are.

    Raises:
        BodyTooLarge, InvalidRequest: They are none.
    """
    try:
        return Envelope.model_validate(load_json(raw, limit=MAX_BYTES))
    except TooManyBytes as error:
        raise BodyTooLarge(error.message) from None
    except MalformedBody as error:
        raise InvalidRequest(error.message) from None
    except ValidationError as error:
        raise InvalidRequest(wrong_in(error)) from None


def wrong_in(error: ValidationError) -> str:
    """Return the first thing that is wrong, in one sentence, without the value."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"]))[:200] or "the value"
    return f"{place}: {first['msg'].removeprefix('Value error, ')}"[:400]
