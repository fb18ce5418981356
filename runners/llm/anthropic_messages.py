"""Anthropic's messages as they stream."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import anthropic
import httpx2

from runners.llm.base import NO_KEY, Delta, LlmSettings, Message, Stop, ToolSpec
from runners.llm.provider_errors import classify_error
from runners.llm.stream_events import TurnEnd, TurnRequest
from runners.llm.tool_calls import ToolCallAssembler, token_count

_OWN = "https://api.anthropic.com"
MAX_TOKENS = 8192  # of one answer, where no setting says: the API wants a number
_STOPS: Mapping[str, Stop] = {
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "refusal",
    "model_context_window_exceeded": "length",
}
_NOT_OF_AN_ID = re.compile(r"[^A-Za-z0-9_-]")
_FAILURES = (
    anthropic.AnthropicError,
    httpx2.HTTPError,
    ValueError,
    TypeError,
    AttributeError,
    KeyError,
)


class AnthropicMessages:
    """Speaks with one server."""

    def __init__(self, settings: LlmSettings, http: httpx2.AsyncClient) -> None:
        self._settings = settings
        self._client = anthropic.AsyncAnthropic(
            api_key=settings.api_key or NO_KEY,
            # The library adds /v1 itself, which the address of a server often ends with.
            base_url=settings.base_url.removesuffix("/v1") or _OWN,
            max_retries=0,
            http_client=http,
        )

    async def close(self) -> None:
        """Close kept connections."""
        await self._client.close()

    async def turn(self, request: TurnRequest) -> AsyncGenerator[Delta | TurnEnd, None]:
        """Ask once."""
        calls, said, stream = ToolCallAssembler(), _Said(), None
        try:
            stream = await self._client.messages.create(
                model=self._settings.model,
                max_tokens=request.max_tokens or MAX_TOKENS,
                messages=[],
                stream=True,
                extra_body=self._body(request),  # as it is: the library would walk through it
            )
            async with stream:
                async for event in stream:
                    if text := said.take(event, calls):
                        yield Delta(text)
                    if said.is_closed:
                        break
        except _FAILURES as error:
            if not said.is_closed:
                raise classify_error(error, self._settings, has_begun=stream is not None) from None
        if said.is_closed:
            is_without = said.stop == "tool_calls" and not calls
            stop: Stop = "stop" if is_without else said.stop
            yield TurnEnd(stop, calls.whole(), said.input_tokens, said.output_tokens)

    def _body(self, request: TurnRequest) -> dict[str, Any]:
        told = "\n\n".join(one.content for one in request.messages if one.role == "system")
        body: dict[str, Any] = {"messages": _messages(request.messages)}
        if told:
            body["system"] = told
        if request.tools:
            body["tools"] = _tools(request.tools)
        return body


class _Said:
    """What the events of one turn amount to."""

    def __init__(self) -> None:
        self.is_closed = False
        self.stop: Stop = "stop"
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None

    def take(self, event: Any, calls: ToolCallAssembler) -> str:
        """Take an event; return the text in it."""
        if event.type == "content_block_start" and event.content_block.type == "tool_use":
            block = event.content_block
            calls.add(event.index, id_=block.id, name=block.name)
        elif event.type == "content_block_delta":
            return self._piece(event, calls)
        elif event.type == "message_start":
            self._count(event.message.usage)
        elif event.type == "message_delta":
            self.stop = _STOPS.get(str(event.delta.stop_reason), "stop")
            self._count(event.usage)
        elif event.type == "message_stop":
            self.is_closed = True
        return ""

    def _piece(self, event: Any, calls: ToolCallAssembler) -> str:
        if event.delta.type == "input_json_delta":
            calls.add(event.index, piece=event.delta.partial_json or "")
        return str(event.delta.text) if event.delta.type == "text_delta" else ""

    def _count(self, usage: Any) -> None:
        if usage is None:
            return
        # What was read from a cache or written to one counts beside input_tokens, not in it.
        parts = [
            token_count(getattr(usage, name, None))
            for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        ]
        if parts[0] is not None:
            self.input_tokens = sum(part or 0 for part in parts)
        if (made := token_count(usage.output_tokens)) is not None:
            self.output_tokens = made


def _tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    return [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}
        for tool in tools
    ]


def _messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the talk without its system texts, neighbours of one role as one message: results of
    tools are blocks of the user's.
    """
    told: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        if not told or told[-1]["role"] != role:
            told.append({"role": role, "content": []})
        told[-1]["content"] += _blocks(message)
    return [one for one in told if one["content"]]


def _blocks(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [
            {
                "type": "tool_result",
                "tool_use_id": _id(message.tool_call_id),
                "content": message.content,
            }
        ]
    # The API takes no text that is empty or blank.
    texts = [{"type": "text", "text": message.content}] if message.content.strip() else []
    calls = [
        {
            "type": "tool_use",
            "id": _id(call.tool_call_id),
            "name": call.name,
            "input": dict(call.arguments),
        }
        for call in message.tool_calls
    ]
    return [*texts, *calls]


def _id(told: str) -> str:
    """Return a call's id as this API takes it, also where another server made it: a run may be
    tried again with another provider.
    """
    return _NOT_OF_AN_ID.sub(lambda odd: f"_{ord(odd[0]):02x}", told)
