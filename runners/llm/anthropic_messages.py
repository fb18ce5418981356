"""Provider for Anthropic's Messages API, streamed."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import anthropic
import httpx2

from runners.llm.base import NO_KEY, Delta, LlmSettings, Message, Stop, ToolSpec
from runners.llm.provider import TurnEnd, TurnRequest
from runners.llm.provider_errors import classify_error
from runners.llm.tool_calls import ToolCallAssembler, token_count

_DEFAULT_URL = "https://api.anthropic.com"
MAX_TOKENS = 8192  # of one reply, if not configured: the API requires a number
_STOPS: Mapping[str, Stop] = {
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "refusal",
    "model_context_window_exceeded": "length",
}
_CACHE = {"type": "ephemeral"}  # caches the request up to and including the block that has it
_INVALID_ID_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]")
_FAILURES = (
    anthropic.AnthropicError,
    httpx2.HTTPError,
    ValueError,
    TypeError,
    AttributeError,
    KeyError,
)


class AnthropicMessages:
    """A client of one server."""

    def __init__(self, settings: LlmSettings, http: httpx2.AsyncClient) -> None:
        self._settings = settings
        self._client = anthropic.AsyncAnthropic(
            api_key=settings.api_key or NO_KEY,
            # The library appends /v1 itself, and configured URLs often end with it.
            base_url=settings.base_url.removesuffix("/v1") or _DEFAULT_URL,
            max_retries=0,
            http_client=http,
        )

    async def close(self) -> None:
        """Close pooled connections."""
        await self._client.close()

    async def turn(self, request: TurnRequest) -> AsyncGenerator[Delta | TurnEnd, None]:
        """Request one turn."""
        calls, state, stream = ToolCallAssembler(), _AnthropicTurn(), None
        try:
            stream = await self._client.messages.create(
                model=self._settings.model,
                max_tokens=request.max_tokens or MAX_TOKENS,
                messages=[],
                stream=True,
                extra_body=self._body(request),  # unchecked: the library would traverse all of it
            )
            async with stream:
                async for event in stream:
                    if text := state.add(event, calls):
                        yield Delta(text)
                    if state.is_complete:
                        break
        except _FAILURES as error:
            if not state.is_complete:
                raise classify_error(
                    error, self._settings, has_started=stream is not None
                ) from None
        if state.is_complete:
            has_no_calls = state.stop == "tool_calls" and not calls
            stop: Stop = "stop" if has_no_calls else state.stop
            yield TurnEnd(
                stop,
                calls.assemble(),
                state.input_tokens,
                state.output_tokens,
                state.cache_read_tokens,
                state.cache_write_tokens,
            )

    def _body(self, request: TurnRequest) -> dict[str, Any]:
        system = "\n\n".join(
            message.content for message in request.messages if message.role == "system"
        )
        body: dict[str, Any] = {"messages": _messages(request.messages)}
        if system:
            body["system"] = system
        if request.tools:
            body["tools"] = _tools(request.tools)
            body["tools"][-1]["cache_control"] = _CACHE
            if request.only_tool:
                body["tool_choice"] = {"type": "tool", "name": request.only_tool}
        return body


class _AnthropicTurn:
    """The state of one turn, built from its events."""

    def __init__(self) -> None:
        self.is_complete = False
        self.stop: Stop = "stop"
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.cache_read_tokens = self.cache_write_tokens = 0

    def add(self, event: Any, calls: ToolCallAssembler) -> str:
        """Add an event; return its text."""
        if event.type == "content_block_start" and event.content_block.type == "tool_use":
            block = event.content_block
            calls.add(event.index, id_=block.id, name=block.name)
        elif event.type == "content_block_delta":
            return self._add_delta(event, calls)
        elif event.type == "message_start":
            self._count(event.message.usage)
        elif event.type == "message_delta":
            self.stop = _STOPS.get(str(event.delta.stop_reason), "stop")
            self._count(event.usage)
        elif event.type == "message_stop":
            self.is_complete = True
        return ""

    def _add_delta(self, event: Any, calls: ToolCallAssembler) -> str:
        if event.delta.type == "input_json_delta":
            calls.add(event.index, fragment=event.delta.partial_json or "")
        return str(event.delta.text) if event.delta.type == "text_delta" else ""

    def _count(self, usage: Any) -> None:
        if usage is None:
            return
        # input_tokens does not include tokens read from or written to the cache.
        parts = [
            token_count(getattr(usage, name, None))
            for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        ]
        if parts[0] is not None:
            self.input_tokens = sum(part or 0 for part in parts)
            self.cache_read_tokens, self.cache_write_tokens = parts[1] or 0, parts[2] or 0
        if (output_tokens := token_count(usage.output_tokens)) is not None:
            self.output_tokens = output_tokens


def _tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    return [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}
        for tool in tools
    ]


def _messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the messages without system texts; tool results become blocks of user messages.

    Consecutive messages of one role are merged, because the API requires alternating roles. The
    cache ends before the first temporary message, and before the newest reply: there it ended in
    the request before, which the API finds only if it is few blocks away.
    """
    merged: list[dict[str, Any]] = []
    blocks: list[dict[str, Any]] = []
    stable, before_reply = None, 0  # how many blocks the cache contains
    for message in messages:
        if message.role == "system":
            continue
        if message.is_temporary and stable is None:
            stable = len(blocks)
        if message.role == "assistant":
            before_reply = len(blocks)
        role = "assistant" if message.role == "assistant" else "user"
        if not merged or merged[-1]["role"] != role:
            merged.append({"role": role, "content": []})
        added = _blocks(message)
        if message.images and blocks and blocks[-1]["type"] == "tool_result":
            blocks[-1]["content"] += _images(message)
        else:
            added = [*_images(message), *added]
        merged[-1]["content"] += added
        blocks += added
    for end in (stable, before_reply):
        _end_cache(blocks[:end])
    return [entry for entry in merged if entry["content"]]


def _end_cache(blocks: Sequence[dict[str, Any]]) -> None:
    """Let the cache end after the last block that the next request repeats unchanged."""
    repeated = (block for block in reversed(blocks) if not _has_image(block))
    if (last := next(repeated, None)) is not None:
        last["cache_control"] = _CACHE


def _has_image(block: Mapping[str, Any]) -> bool:
    parts = block["content"] if block["type"] == "tool_result" else [block]
    return any(part["type"] == "image" for part in parts)


def _images(message: Message) -> list[dict[str, Any]]:
    return [
        {
            "type": "image",
            "source": {
                "type": "base64",
                "media_type": image.mime_type,
                "data": b64encode(image.data).decode(),
            },
        }
        for image in message.images
    ]


def _blocks(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [
            {
                "type": "tool_result",
                "tool_use_id": _id(message.tool_call_id),
                "content": [{"type": "text", "text": message.content}],
            }
        ]
    # The API rejects empty and blank texts.
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


def _id(call_id: str) -> str:
    """Return a call's id in the characters that this API accepts.

    The id may come from another provider, with which an earlier attempt of the run worked.
    """
    return _INVALID_ID_CHARACTERS.sub(lambda character: f"_{ord(character[0]):02x}", call_id)
