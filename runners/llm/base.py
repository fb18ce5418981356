"""Types of a conversation with a model: settings, messages, parts of a streamed turn (S1 §5).

A turn is one request to the model and its reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]
Stop = Literal["stop", "tool_calls", "length", "refusal"]
NO_KEY = "none"  # sent if no key is set: the libraries require one, local servers do not


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a model, in US dollars per million tokens."""

    input_usd: float
    output_usd: float
    cache_read_usd: float | None = None  # None: as other input
    cache_write_usd: float | None = None

    def of(
        self, input_tokens: int, output_tokens: int, *, cache_read: int = 0, cache_write: int = 0
    ) -> float:
        """Return the cost of these tokens in US dollars.

        Args:
            cache_read: how many of the input tokens the server read from its prompt cache.
            cache_write: how many of them it wrote to the cache.
        """
        read_usd = self.input_usd if self.cache_read_usd is None else self.cache_read_usd
        write_usd = self.input_usd if self.cache_write_usd is None else self.cache_write_usd
        cost = (input_tokens - cache_read - cache_write) * self.input_usd
        cost += cache_read * read_usd + cache_write * write_usd
        return (cost + output_tokens * self.output_usd) / 1_000_000


@dataclass(frozen=True, slots=True)
class LlmSettings:
    """Which model to use, where it is, and its limits.

    Attributes:
        model: empty: no model is configured, and agent runs end with MODEL_UNAVAILABLE.
        base_url: empty: the provider's public API.
        api_key: never stored in a row, a log or a message.
        timeout_ms: of one turn, including retries and waits.
        max_output_tokens: of one reply; 0: the provider's default.
        context_tokens: approximate limit of what one request sends to the model.
        price: None: not configured, so costs are unknown.
        vision: whether the model gets pictures of pages; auto: if its server is the provider's own.
        image_long_edge: the larger side of such a picture, in pixels.
    """

    provider: Literal["openai", "anthropic"] = "openai"
    model: str = ""
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    timeout_ms: int = 90_000
    max_output_tokens: int = 0
    context_tokens: int = 100_000
    price: Price | None = None
    vision: Literal["auto", "on", "off"] = "auto"
    image_long_edge: int = 1568

    @property
    def can_see(self) -> bool:
        """Whether the model gets pictures."""
        return self.vision == "on" or (self.vision == "auto" and not self.base_url)

    @property
    def location(self) -> str:
        """Where the model's server is, for messages."""
        return self.base_url or f"the {self.provider} API"

    @property
    def label(self) -> str:
        """The model and its location, for display; empty if no model is configured."""
        return f"{self.model} at {self.location}" if self.model else ""


@dataclass(frozen=True, slots=True)
class LlmCall:
    """A tool call that the model requests, completely received.

    Attributes:
        problem: what is wrong with the call, as text for the model; empty if it is valid. An
            invalid call is not made and has no arguments.
    """

    tool_call_id: str
    name: str
    arguments: Mapping[str, Any]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture for a model that can see."""

    data: bytes = field(repr=False)
    mime_type: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message; only an assistant's has `tool_calls`, only a tool's has `tool_call_id`.

    Attributes:
        images: of a user's message; sent only to models that can see.
        is_temporary: the next request does not repeat this message, so the prompt cache of the
            server should end before it.
    """

    role: Role
    content: str
    tool_calls: Sequence[LlmCall] = ()
    tool_call_id: str = ""
    images: Sequence[Image] = ()
    is_temporary: bool = False


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool offered to the model; `schema` is the JSON Schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost of a turn; `cost_usd` is None if no price is configured.

    Attributes:
        is_estimated: the server did not report the tokens; they are estimated from text lengths.
        cache_read_tokens: how many of the input tokens the server read from its prompt cache.
        cache_write_tokens: how many of the input tokens it wrote to the cache.
    """

    input_tokens: int
    output_tokens: int
    cost_usd: float | None = None
    is_estimated: bool = False
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Delta:
    """The next piece of the model's text."""

    content: str


@dataclass(frozen=True, slots=True)
class Restarted:
    """The stream was interrupted and the request is sent again; the text so far is void."""


@dataclass(frozen=True, slots=True)
class Done:
    """The end of a complete turn.

    Attributes:
        stop: why the turn ended; after `length` and `refusal` none of its calls may be made.
        content: the whole text of the turn.
    """

    stop: Stop
    usage: Usage
    content: str = ""


Part = Delta | LlmCall | Restarted | Done
