"""The types of tools: the definition of a tool, the context of a call, and its result.

This module imports neither Django nor Celery nor another app, so a tool can be tested alone.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict

from runners.trust_level import TrustLevel

if TYPE_CHECKING:
    from runners.browser.session.session import OpenBrowserSession
    from runners.gateway.request import RunnerTarget
    from runners.paired_browser.choice import PairedBrowser
    from runners.workspace.workspace import ProjectWorkspace


class Effect(enum.StrEnum):
    """The effect of a call on the outside world. After its worker was lost, a call may be repeated
    unless its effect is ONCE.
    """

    READ = "read"
    AT_LEAST_ONCE = "at_least_once"
    ONCE = "once"


class Closed(BaseModel):
    """A pydantic model that refuses unknown fields; its JSON names may be camelCase aliases."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


def _whole_number(value: object) -> object:
    """Accept 5 and 5.0 (both are integers in JSON Schema); refuse true, "5" and 5.5."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be an integer")
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("must be an integer")
    return int(value)


# Write limits before it in an Annotated type: then the JSON Schema has them as minimum and maximum.
AS_WHOLE = BeforeValidator(_whole_number)
Whole = Annotated[int, AS_WHOLE]


class SaveArtifact(Protocol):
    """Store bytes as an artifact of the run and return its artifactId."""

    def __call__(
        self, data: bytes, *, name: str, mime_type: str, kind: str = "file"
    ) -> Awaitable[str]: ...


class ReadUpload(Protocol):
    """Return name and bytes of an artifact or a file of the project that the run may upload."""

    def __call__(
        self, *, artifact_id: str | None, path: str | None, limit: int
    ) -> Awaitable[tuple[str, bytes]]: ...


class Emit(Protocol):
    """Append an event of the type `type_` to the run's log while the tool executes."""

    def __call__(self, type_: str, data: Mapping[str, Any]) -> None: ...


Reference = tuple[int | None, str | None]  # clickId and XPath of an element


@dataclass(frozen=True, slots=True)
class ExpectedElement:
    """The element that a call was judged by.

    Attributes:
        nodes: the elements of the call's references.
        compares: a person confirmed the call: the element has to be as it was judged.
    """

    node: str
    nodes: Mapping[Reference, str] = field(default_factory=dict)
    compares: bool = False


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Everything that a tool call may use.

    Attributes:
        run_id, session_id: the run of the call and its browser session; a direct call gets new ids.
        trust: the caller's trust level; remote callers reach public addresses only.
        deadline: `time.monotonic()` value, in seconds, by which the call must have ended.
        save_artifact: store bytes; awaitable, returns the artifactId.
        emit: append an event to the run's log (`step.progress`, `tool.update`, …).
        browser: the run's browser session, for tools of kind browser.
        workspace: the folder of the call and its policy, for tools of kind workspace.
        runner: the runner that executes the call, if it is not a local tool.
        paired_browser: the one that performs the call, if it is a browser action there.
        read_upload: read a file for an upload; None: the call may upload nothing.
        traceparent: trace of the call (W3C Trace Context).
        secrets: secret inputs of this call by name; never to be emitted or returned.
        mask: replaces every secret of the run in a text by `***`.
        confirmed_basis: digest of the file's content, or of the scripts, that a person's
            confirmation of this call is for; None: the call needed no confirmation.
        judged: the element of a page that the call was judged by: no other one gets its input.
    """

    run_id: str
    trust: TrustLevel
    deadline: float
    save_artifact: SaveArtifact
    emit: Emit
    browser: OpenBrowserSession | None = None
    workspace: ProjectWorkspace | None = None
    runner: RunnerTarget | None = None
    paired_browser: PairedBrowser | None = None
    session_id: str = ""
    read_upload: ReadUpload | None = None
    traceparent: str | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    mask: Callable[[str], str] = str
    confirmed_basis: str | None = None
    judged: ExpectedElement | None = None

    def seconds_left(self, at_most: float | None = None) -> float:
        """Return the seconds until the deadline, never below 0, at most `at_most`."""
        left = max(0.0, self.deadline - time.monotonic())
        return left if at_most is None else min(left, at_most)


ToolFunction = Callable[[Any, ToolContext], Awaitable[Mapping[str, Any]]]
ArgumentRepair = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: a coroutine function with a schema, found by name in the registry.

    Attributes:
        request, response: JSON Schemas of input and output, if the tool's contract fixes them;
            otherwise the input model defines the input, and the output has no schema.
        uses_browser: the tool needs a browser, so a worker executes its direct calls.
        opens_browser: the time limit starts once the browser has started, because starting one may
            take longer than the limit.
        repair_arguments: corrects arguments that the contract accepts although they do not match
            the schema; called before validation.
        developer: available in developer mode only.
        agent_only: available to the agent loop only; neither REST nor MCP lists or calls it.
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
    repair_arguments: ArgumentRepair | None = None
    developer: bool = False
    agent_only: bool = False
    opens_browser: bool = False


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call, as policy, audit log and runner gateway receive it."""

    name: str
    args: Mapping[str, Any]
    target_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call: an output, or an error (`ToolFailed.as_dict`).

    Attributes:
        output: an object for local tools; any JSON value for tools of a runner (S3 §4.1).
    """

    ok: bool
    output: Any = None
    error: Mapping[str, Any] | None = None
