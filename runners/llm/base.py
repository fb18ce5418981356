"""The vocabulary of talks with a model: what it is asked, and what it says, piece by piece
(S1 §5).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant", "tool"]
Stop = Literal["stop", "tool_calls", "length", "refusal"]
NO_KEY = "none"  # what is sent where no key is set: the libraries want one, local servers do not


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in US dollars for a million tokens."""

    input_usd: float
    output_usd: float

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """Return what so many tokens cost, in US dollars."""
        return (input_tokens * self.input_usd + output_tokens * self.output_usd) / 1_000_000


@dataclass(frozen=True, slots=True)
class LlmSettings:
    """Which model answers, where, and within what.

    Attributes:
        model: empty: there is none, and agent runs end with MODEL_UNAVAILABLE.
        base_url: empty: the provider's own address.
        api_key: never in a row, a log or a message.
        timeout_ms: of one call of the model, tries and waits together.
        max_output_tokens: of one answer; 0 leaves it to the provider.
        context_tokens: about how much a call may tell the model.
        price: None: nobody said, so costs are unknown.
    """

    provider: Literal["openai", "anthropic"] = "openai"
    model: str = ""
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    timeout_ms: int = 90_000
    max_output_tokens: int = 0
    context_tokens: int = 100_000
    price: Price | None = None

    @property
    def location(self) -> str:
        """Where the model's server is, for people."""
        return self.base_url or f"the {self.provider} API"

    @property
    def label(self) -> str:
        """Which model it is and where, for people; empty: there is none."""
        return f"{self.model} at {self.location}" if self.model else ""


@dataclass(frozen=True, slots=True)
class LlmCall:
    """A tool call that the model asks for, wholly received.

    Attributes:
        broken: what is wrong with it, for the model to read; such a call is not made, and its
            arguments are empty.
    """

    tool_call_id: str
    name: str
    arguments: Mapping[str, Any]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a talk: `tool_calls` are an assistant's, `tool_call_id` is a tool's."""

    role: Role
    content: str
    tool_calls: Sequence[LlmCall] = ()
    tool_call_id: str = ""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it; `schema` is a JSON Schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call of the model took; `cost_usd` is None where no price was said.

    Attributes:
        is_estimated: the model's server did not say; counted from the length of the texts.
    """

    input_tokens: int
    output_tokens: int
    cost_usd: float | None = None
    is_estimated: bool = False


@dataclass(frozen=True, slots=True)
class Delta:
    """Some more of what the model says."""

    content: str


@dataclass(frozen=True, slots=True)
class Restarted:
    """The model's answer was cut, and it is asked again: what it said so far does not count."""

    reason: str


@dataclass(frozen=True, slots=True)
class Done:
    """The model's turn is closed: what came before is whole.

    Attributes:
        stop: why; after `length` and `refusal` no call of the turn is to be made.
        content: all that it said in this turn.
    """

    stop: Stop
    usage: Usage
    content: str = ""


Part = Delta | LlmCall | Restarted | Done


class LlmGateway(Protocol):
    """Whoever can ask a model."""

    def stream_chat(
        self,
        *,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        timeout_ms: int | None = None,
    ) -> AsyncGenerator[Part, None]:
        """Ask the model and yield what it says as it comes: its calls once its turn closed wholly,
        `Done` last. `timeout_ms`: at most this long, and at most the settings' own limit.

        Closing the iterator, or cancelling the task, closes the connection at once.

        Raises:
            ModelUnavailable: No model is set, its server cannot be reached, or it refuses the key.
            ModelFailed: It was cut twice, was late, or answered errors to the last try.
            ModelRefused: It does not take what it was asked.
        """
