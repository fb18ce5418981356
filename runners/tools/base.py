"""The vocabulary of tools: what one is, what it gets, what it gives back.

Nothing here imports Django, Celery or an app, so a tool can be tried alone.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict

from runners.trust import TrustLevel

if TYPE_CHECKING:
    from runners.browser.session.session import BrowserSession
    from runners.gateway.request import RunnerTarget
    from runners.workspace.workspace import Workspace


class Effect(enum.StrEnum):
    """What a lost call may have done out there, and so whether it may be repeated (reliability rule
    4).
    """

    READ = "read"
    AT_LEAST_ONCE = "at_least_once"
    ONCE = "once"


class Closed(BaseModel):
    """A pydantic model that refuses unknown fields; its JSON names are camelCase aliases where they
    differ.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


def _whole_number(value: object) -> object:
    """Take 5 and 5.0 (JSON Schema counts both as integers), not true, "5" or 5.5."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be an integer")
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("must be an integer")
    return int(value)


Whole = Annotated[int, BeforeValidator(_whole_number)]


class SaveArtifact(Protocol):
    """Keep bytes as an artifact of the run and return its artifactId."""

    def __call__(
        self, data: bytes, *, name: str, mime_type: str, kind: str = "file"
    ) -> Awaitable[str]: ...


class Emit(Protocol):
    """Tell the run's listeners something while the tool works; `type_` is an event
    type of runs.md.
    """

    def __call__(self, type_: str, data: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class ToolContext:
    """All that a tool may use of the world around it.

    Attributes:
        run_id, session_id: the run this call belongs to, and the session that the run works in
            (made for the call outside a run).
        trust: the caller's trust level; remote callers reach public addresses only.
        deadline: `time.monotonic()` value in seconds after which the call must be over.
        save_artifact: keep bytes; awaitable, returns the artifactId.
        emit: tell listeners (`step.progress`, `tool.update`, …).
        browser: the run's browser session, where the tool's kind is browser.
        workspace: the folder that the call works in, where the tool's kind is workspace.
        runner: what performs the call, where it is none of our own tools.
        traceparent: of the trace that the call is part of (W3C Trace Context).
        secrets: secret inputs of this call by name; never to be emitted or returned.
        mask: takes every secret of the run out of a text.
    """

    run_id: str
    trust: TrustLevel
    deadline: float
    save_artifact: SaveArtifact
    emit: Emit
    browser: BrowserSession | None = None
    workspace: Workspace | None = None
    runner: RunnerTarget | None = None
    session_id: str = ""
    traceparent: str | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    mask: Callable[[str], str] = str

    def seconds_left(self, at_most: float | None = None) -> float:
        """Return the seconds until the deadline, never below 0, at most `at_most`."""
        left = max(0.0, self.deadline - time.monotonic())
        return left if at_most is None else min(left, at_most)


ToolFunction = Callable[[Any, ToolContext], Awaitable[Mapping[str, Any]]]
Mend = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A callable with a schema, found by name in the registry.

    Attributes:
        request, response: the JSON Schemas of a tool whose seed has them; else the input model
            says what goes in, and nothing what comes out.
        uses_browser: it needs a browser, so a worker carries its calls.
        opens_browser: its time begins when the browser is there: to start one may take longer than
            the tool may.
        mends: what its seed lets callers get wrong is put right by this before the schema is asked.
        developer: only for developer mode.
        agent_only: only for the agent's loop: no door lists it, or calls it.
    """

    name: str
    kind: str
    effect: Effect
    timeout_ms: int
    description: str
    input_model: type[BaseModel]
    function: ToolFunction
    request: Mapping[str, Any] | None = None
    response: Mapping[str, Any] | None = None
    uses_browser: bool = False
    mends: Mend | None = None
    developer: bool = False
    agent_only: bool = False
    opens_browser: bool = False


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool, as policy, audit and the gateway see it."""

    name: str
    args: Mapping[str, Any]
    target_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of a call: an output, or an error of `runners.errors` in its one shape.

    Attributes:
        output: of our own tools an object; of a runner's any value of JSON (S3 §4.1).
    """

    ok: bool
    output: Any = None
    error: Mapping[str, Any] | None = None
