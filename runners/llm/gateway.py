"""The gateway: a model's turn, tried until it is whole, within its time, and what it cost."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any
from weakref import WeakKeyDictionary

from runners.errors import ModelFailed, ModelUnavailable
from runners.llm.base import (
    NO_KEY,
    Done,
    LlmGateway,
    LlmSettings,
    Message,
    Part,
    Restarted,
    ToolSpec,
    Usage,
)
from runners.llm.stream_events import Provider, ServerBusy, StreamCut, TurnEnd, TurnRequest
from runners.llm.tool_calls import MAX_TEXT

MAX_TRIES = 4  # of a turn that the server has no time for
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 8.0
BYTES_PER_TOKEN = 4  # where a server does not count
SENT = frozenset(
    {
        "host",
        "connection",
        "accept",
        "accept-encoding",
        "user-agent",
        "content-type",
        "content-length",
        "anthropic-version",
    }
)
_PROVIDERS = {
    "openai": ("runners.llm.openai_compatible", "OpenAiCompatible"),
    "anthropic": ("runners.llm.anthropic_messages", "AnthropicMessages"),
}


class Gateway:
    """Asks one model; belongs to the event loop that it is used on.

    Args:
        opens: makes what speaks with the model's server, at the first use, in a thread.
    """

    def __init__(
        self, settings: LlmSettings, opens: Callable[[LlmSettings], Provider] | None = None
    ) -> None:
        self._settings, self._opens = settings, opens or open_provider
        self._provider: Provider | None = None
        self._opening = asyncio.Lock()

    async def stream_chat(
        self,
        *,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        timeout_ms: int | None = None,
    ) -> AsyncGenerator[Part, None]:
        """As `LlmGateway` says."""
        limit_ms = min(timeout_ms or self._settings.timeout_ms, self._settings.timeout_ms)
        loop = asyncio.get_running_loop()
        provider = await self._speaker()  # loads its library the first time: no part of the turn
        until = loop.time() + limit_ms / 1000
        request = TurnRequest(messages, tools, self._settings.max_output_tokens)
        cuts, waits = 0, 0
        while True:
            try:
                async with aclosing(self._try(provider, request, until)) as parts:
                    async for part in parts:
                        yield part
                return
            except TimeoutError:
                raise self._failed(f"did not answer within {limit_ms} ms", timedOut=True) from None
            except StreamCut as cut:
                cuts += 1
                if cuts > 1:
                    raise self._failed(f"was cut off twice: {cut}") from None
                yield Restarted(str(cut))
            except ServerBusy as busy:
                waits += 1
                await self._wait(busy, waits, left_s=until - loop.time())

    async def close(self) -> None:
        """Close kept connections."""
        if self._provider is not None:
            await self._provider.close()

    async def _try(
        self, provider: Provider, request: TurnRequest, until: float
    ) -> AsyncGenerator[Part, None]:
        said, size = [], 0
        async with aclosing(provider.turn(request)) as signals:
            while True:
                try:
                    async with asyncio.timeout_at(until):
                        signal = await anext(signals)
                except StopAsyncIteration:
                    raise StreamCut("the stream ended before the turn was closed") from None
                if isinstance(signal, TurnEnd):
                    break
                said.append(signal.content)
                size += len(signal.content)
                if size > MAX_TEXT:
                    raise self._failed(f"said more than {MAX_TEXT} characters in one turn")
                yield signal
        for call in signal.calls:
            yield call
        content = "".join(said)
        yield Done(signal.stop, self._usage(request, signal, content), content)

    async def _speaker(self) -> Provider:
        if not self._settings.model:
            raise ModelUnavailable(
                "There is no model here: CONTINUITY_LLM_MODEL is not set.", details={"model": ""}
            )
        async with self._opening:
            if self._provider is None:
                self._provider = await asyncio.to_thread(self._opens, self._settings)
            return self._provider

    async def _wait(self, busy: ServerBusy, waits: int, *, left_s: float) -> None:
        """Wait as long as a busy server asks for.

        Raises:
            ModelFailed: There is not so much time, or it was asked often enough.
        """
        after_s = busy.after_s
        if after_s is None:
            after_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (waits - 1))
        if waits >= MAX_TRIES or after_s >= left_s:
            told = {} if busy.after_s is None else {"retryAfterMs": int(busy.after_s * 1000)}
            if busy.status is not None:
                told["status"] = busy.status
            raise self._failed(f"is not to be had: {busy}", **told)
        await asyncio.sleep(after_s)

    def _failed(self, told: str, **details: Any) -> ModelFailed:
        model = self._settings.model
        return ModelFailed(f"The model {model} {told}.", details={"model": model, **details})

    def _usage(self, request: TurnRequest, closed: TurnEnd, content: str) -> Usage:
        given, made = closed.input_tokens, closed.output_tokens
        is_estimated = not given or made is None
        if not given:  # there is no turn of no tokens: its server does not count
            given = estimate_tokens(request.messages, request.tools)
        if made is None:
            calls = sum(len(str(call.arguments)) for call in closed.calls)
            made = (len(content.encode(errors="replace")) + calls) // BYTES_PER_TOKEN + 1
        price = self._settings.price
        cost = None if price is None else price.of(given, made)
        return Usage(given, made, cost, is_estimated)


def estimate_tokens(messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> int:
    """Return about how many tokens a request has, by its bytes."""
    size = sum(len(message.content.encode()) + 16 for message in messages)
    size += sum(len(str(call.arguments)) for one in messages for call in one.tool_calls)
    size += sum(len(tool.description) + len(str(tool.schema)) for tool in tools)
    return size // BYTES_PER_TOKEN


def open_provider(settings: LlmSettings) -> Provider:
    """Return what speaks with the model's server, its library imported and its TLS settings read:
    a second's work, for a thread.
    """
    module, name = _PROVIDERS[settings.provider]
    kind = getattr(importlib.import_module(module), name)
    http = importlib.import_module("httpx2")
    key = f"Bearer {settings.api_key or NO_KEY}"

    async def send_ours_alone(request: Any) -> None:
        """The libraries add what variables of theirs say: headers, organisations, other keys. None
        of them is a setting of ours, nor for whichever server ours name.
        """
        for name in set(request.headers) - SENT:
            del request.headers[name]
        request.headers["authorization"] = key

    # No redirects: keys are for the address that was configured. Our own deadline is the limit.
    client = http.AsyncClient(
        follow_redirects=False,
        timeout=http.Timeout(None, connect=10.0),
        event_hooks={"request": [send_ours_alone]},
    )
    made: Provider = kind(settings, client)
    return made


_gateways: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[LlmSettings, Gateway]] = (
    WeakKeyDictionary()
)


async def get_gateway(settings: LlmSettings) -> LlmGateway:
    """Return the gateway of this event loop, which keeps connections open between turns."""
    loop = asyncio.get_running_loop()
    known, found = _gateways.get(loop, (None, None))
    if found is None or known != settings:
        if found is not None:
            await found.close()
        found = Gateway(settings)
        _gateways[loop] = settings, found
    return found


async def close_gateway() -> None:
    """Close the connections of this event loop's gateway, where it has one."""
    _, found = _gateways.pop(asyncio.get_running_loop(), (None, None))
    if found is not None:
        await found.close()
