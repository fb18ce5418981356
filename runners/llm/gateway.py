"""The model gateway: request a turn, retry within the time limit, and compute its cost."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any
from weakref import WeakKeyDictionary

from runners.errors import ModelFailed, ModelUnavailable
from runners.llm.base import (
    NO_KEY,
    Done,
    LlmSettings,
    Message,
    Part,
    Restarted,
    ToolSpec,
    Usage,
)
from runners.llm.provider import Provider, ServerBusy, StreamCut, TurnEnd, TurnRequest
from runners.llm.tool_calls import MAX_TEXT

MAX_ATTEMPTS = 4  # of a turn while the server is busy
FIRST_WAIT_S, MAX_WAIT_S = 0.5, 8.0
BYTES_PER_TOKEN = 4  # to estimate what a server does not report
TOKENS_PER_IMAGE = 1600  # about what providers count for 1568 pixels
ALLOWED_HEADERS = frozenset(
    {
        "host",
        "connection",
        "accept",
        "accept-encoding",
        "user-agent",
        "content-type",
        "content-length",
    }
)
# Module and class of each provider, and the headers that its API requires.
_PROVIDERS: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "openai": (
        "runners.llm.openai_compatible",
        "OpenAiCompatible",
        {"authorization": "Bearer {key}"},
    ),
    "anthropic": (
        "runners.llm.anthropic_messages",
        "AnthropicMessages",
        {"x-api-key": "{key}", "anthropic-version": "2023-06-01"},
    ),
}


class Gateway:
    """Sends requests to one model; to be used on a single event loop.

    Args:
        create_provider: called in a thread at the first use.
    """

    def __init__(
        self,
        settings: LlmSettings,
        create_provider: Callable[[LlmSettings], Provider] | None = None,
    ) -> None:
        self._settings, self._create_provider = settings, create_provider or open_provider
        self._provider: Provider | None = None
        self._opening = asyncio.Lock()

    async def stream_chat(
        self,
        *,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        timeout_ms: int | None = None,
        only_tool: str = "",
    ) -> AsyncGenerator[Part, None]:
        """Request one turn and yield its parts as they arrive.

        Text comes as it is received, tool calls once the turn is complete, `Done` last.
        `timeout_ms` can only shorten the limit of the settings. `only_tool` names the one tool that
        the model has to call, which some servers ignore. Closing the iterator, or cancelling the
        task, closes the connection immediately.

        Raises:
            ModelUnavailable: No model is configured, its server is unreachable, or rejects the key.
            ModelFailed: The stream was interrupted twice, came late, or all attempts failed.
            ModelRefused: The server rejects the request.
        """
        limit_ms = min(timeout_ms or self._settings.timeout_ms, self._settings.timeout_ms)
        loop = asyncio.get_running_loop()
        # Not part of the turn's time: the first use imports the provider's library.
        provider = await self._get_provider()
        deadline = loop.time() + limit_ms / 1000
        request = TurnRequest(messages, tools, self._settings.max_output_tokens, only_tool)
        cuts, waits = 0, 0
        while True:
            try:
                async with aclosing(self._attempt(provider, request, deadline)) as parts:
                    async for part in parts:
                        yield part
                return
            except TimeoutError:
                raise self._failed(
                    f"did not finish its reply within {limit_ms} ms", timedOut=True
                ) from None
            except StreamCut as cut:
                cuts += 1
                if cuts > 1:
                    raise self._failed(f"was interrupted twice: {cut}") from None
                yield Restarted()
            except ServerBusy as busy:
                waits += 1
                await self._wait(busy, waits, left_s=deadline - loop.time())

    async def close(self) -> None:
        """Close pooled connections."""
        if self._provider is not None:
            await self._provider.close()

    async def _attempt(
        self, provider: Provider, request: TurnRequest, deadline: float
    ) -> AsyncGenerator[Part, None]:
        texts, size = [], 0
        async with aclosing(provider.turn(request)) as events:
            while True:
                try:
                    async with asyncio.timeout_at(deadline):
                        event = await anext(events)
                except StopAsyncIteration:
                    raise StreamCut("the stream ended before the turn was complete") from None
                if isinstance(event, TurnEnd):
                    break
                texts.append(event.content)
                size += len(event.content)
                if size > MAX_TEXT:
                    raise self._failed(f"sent more than {MAX_TEXT} characters in one turn")
                yield event
        for call in event.calls:
            yield call
        content = "".join(texts)
        yield Done(event.stop, self._usage(request, event, content), content)

    async def _get_provider(self) -> Provider:
        if not self._settings.model:
            raise ModelUnavailable(
                "No model is configured: CONTINUITY_LLM_MODEL is not set.", details={"model": ""}
            )
        async with self._opening:
            if self._provider is None:
                self._provider = await asyncio.to_thread(self._create_provider, self._settings)
            return self._provider

    async def _wait(self, busy: ServerBusy, waits: int, *, left_s: float) -> None:
        """Wait as long as a busy server requests, or with exponential backoff.

        Raises:
            ModelFailed: The wait exceeds the time left, or MAX_ATTEMPTS is reached.
        """
        wait_s = busy.retry_after_s
        if wait_s is None:
            wait_s = min(MAX_WAIT_S, FIRST_WAIT_S * 2 ** (waits - 1))
        if waits >= MAX_ATTEMPTS or wait_s >= left_s:
            retry_after_s = busy.retry_after_s
            details = {} if retry_after_s is None else {"retryAfterMs": int(retry_after_s * 1000)}
            if busy.status is not None:
                details["status"] = busy.status
            raise self._failed(f"is not available: {busy}", **details)
        await asyncio.sleep(wait_s)

    def _failed(self, what: str, **details: Any) -> ModelFailed:
        model = self._settings.model
        return ModelFailed(f"The model {model} {what}.", details={"model": model, **details})

    def _usage(self, request: TurnRequest, end: TurnEnd, content: str) -> Usage:
        input_tokens, output_tokens = end.input_tokens, end.output_tokens
        is_estimated = not input_tokens or output_tokens is None
        if not input_tokens:  # no request has 0 tokens: the server does not count
            input_tokens = estimate_tokens(request.messages, request.tools)
        if output_tokens is None:
            calls = sum(len(str(call.arguments)) for call in end.calls)
            size = len(content.encode(errors="replace")) + calls
            output_tokens = size // BYTES_PER_TOKEN + 1
        read = min(end.cache_read_tokens, input_tokens)
        written = min(end.cache_write_tokens, input_tokens - read)
        price, cost = self._settings.price, None
        if price is not None:
            cost = price.of(input_tokens, output_tokens, cache_read=read, cache_write=written)
        return Usage(input_tokens, output_tokens, cost, is_estimated, read, written)


def estimate_tokens(messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> int:
    """Estimate the tokens of a request from its size in bytes."""
    size = sum(len(message.content.encode()) + 16 for message in messages)
    size += sum(len(str(call.arguments)) for message in messages for call in message.tool_calls)
    size += sum(len(tool.description) + len(str(tool.schema)) for tool in tools)
    images = sum(len(message.images) for message in messages)
    return size // BYTES_PER_TOKEN + images * TOKENS_PER_IMAGE


def open_provider(settings: LlmSettings) -> Provider:
    """Return the provider of these settings; blocks for about a second, so call it in a thread.

    It imports the provider's library and loads the TLS configuration.
    """
    module, name, required = _PROVIDERS[settings.provider]
    kind = getattr(importlib.import_module(module), name)
    http = importlib.import_module("httpx2")
    key = settings.api_key or NO_KEY
    own = {header: value.replace("{key}", key) for header, value in required.items()}

    async def set_headers(request: Any) -> None:
        """Send the key as the API takes it, and no header from the libraries' own environment
        variables: it may contain an organisation or a key that is not meant for this server.
        """
        for header in set(request.headers) - ALLOWED_HEADERS:
            del request.headers[header]
        request.headers.update(own)

    # No redirects: the key is sent only to the configured URL. The gateway has its own deadline.
    client = http.AsyncClient(
        follow_redirects=False,
        timeout=http.Timeout(None, connect=10.0),
        event_hooks={"request": [set_headers]},
    )
    provider: Provider = kind(settings, client)
    return provider


_gateways: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[LlmSettings, Gateway]] = (
    WeakKeyDictionary()
)


async def get_gateway(settings: LlmSettings) -> Gateway:
    """Return the gateway of this event loop; it reuses connections between turns.

    If the settings changed, it is replaced and the old one closed.
    """
    loop = asyncio.get_running_loop()
    current, gateway = _gateways.get(loop, (None, None))
    if gateway is None or current != settings:
        if gateway is not None:
            await gateway.close()
        gateway = Gateway(settings)
        _gateways[loop] = settings, gateway
    return gateway
