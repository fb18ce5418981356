"""What happens inside one try at a model's turn, as the gateway hears it from a provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from runners.llm.base import Delta, LlmCall, Message, Stop, ToolSpec


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One turn that is asked for; `max_tokens` 0 leaves it to the provider."""

    messages: Sequence[Message]
    tools: Sequence[ToolSpec]
    max_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The turn's last signal; tokens are None where the server did not say."""

    stop: Stop
    calls: Sequence[LlmCall]
    input_tokens: int | None
    output_tokens: int | None


class StreamCut(Exception):
    """The stream ended before the turn was closed, or what came is no stream."""


class ServerBusy(Exception):
    """The server cannot answer now; `status` and `after_s`, the wait that it asks for, where it
    says so.
    """

    def __init__(self, told: str, *, status: int | None, after_s: float | None) -> None:
        super().__init__(told)
        self.status, self.after_s = status, after_s


class Provider(Protocol):
    """One way to speak with models' servers. A try only: retries are the gateway's."""

    def turn(self, request: TurnRequest) -> AsyncGenerator[Delta | TurnEnd, None]:
        """Ask once; what ends without `Closed` was cut.

        Raises:
            Cut, Busy, ToolFailed
        """

    async def close(self) -> None:
        """Close kept connections."""
