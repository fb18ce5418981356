"""What a provider reports to the gateway during one attempt at a turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from runners.llm.base import Delta, LlmCall, Message, Stop, ToolSpec


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One requested turn.

    Attributes:
        max_tokens: of the reply; 0: the provider's default.
        only_tool: the name of the one tool that the model has to call; empty: it may choose.
    """

    messages: Sequence[Message]
    tools: Sequence[ToolSpec]
    max_tokens: int = 0
    only_tool: str = ""


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The last event of a complete turn; tokens are None if the server did not report them."""

    stop: Stop
    calls: Sequence[LlmCall]
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int = 0  # both are included in input_tokens
    cache_write_tokens: int = 0


class StreamCut(Exception):
    """The stream ended before the turn was complete, or its data is invalid."""


class ServerBusy(Exception):
    """The server cannot process the request now.

    Attributes:
        status: its HTTP status; None if the connection was lost.
        retry_after_s: the wait that the server requests, if it does.
    """

    def __init__(self, message: str, *, status: int | None, retry_after_s: float | None) -> None:
        super().__init__(message)
        self.status, self.retry_after_s = status, retry_after_s


class Provider(Protocol):
    """A client of one kind of model server; it does not retry, the gateway does."""

    def turn(self, request: TurnRequest) -> AsyncGenerator[Delta | TurnEnd, None]:
        """Request one turn; a stream that ends without `TurnEnd` was interrupted.

        Raises:
            StreamCut, ServerBusy, ToolFailed
        """

    async def close(self) -> None:
        """Close pooled connections."""
