"""Provider for OpenAI's chat completions API, streamed, and for servers that imitate it.

Local servers (Ollama, vLLM, llama.cpp) deviate from it: they omit the index of a call or the usage,
or report `stop` although there are calls.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import httpx2
import openai
import orjson

from runners.llm.base import NO_KEY, Delta, Image, LlmSettings, Message, Stop, ToolSpec
from runners.llm.provider import TurnEnd, TurnRequest
from runners.llm.provider_errors import classify_error
from runners.llm.tool_calls import ToolCallAssembler, token_count

_STOPS: Mapping[str, Stop] = {"length": "length", "content_filter": "refusal"}
_FAILURES = (openai.OpenAIError, httpx2.HTTPError, ValueError, TypeError, AttributeError, KeyError)


class OpenAiCompatible:
    """A client of one server."""

    def __init__(self, settings: LlmSettings, http: httpx2.AsyncClient) -> None:
        self._settings = settings
        self._client = openai.AsyncOpenAI(
            api_key=settings.api_key or NO_KEY,
            base_url=settings.base_url or "https://api.openai.com/v1",
            max_retries=0,
            http_client=http,
        )

    async def close(self) -> None:
        """Close pooled connections."""
        await self._client.close()

    async def turn(self, request: TurnRequest) -> AsyncGenerator[Delta | TurnEnd, None]:
        """Request one turn."""
        calls, state, stream = ToolCallAssembler(), _OpenAiTurn(), None
        try:
            # Plain JSON both ways: parsing into the library's types is most of a chunk's cost.
            stream = await self._client.post(
                "/chat/completions",
                body=self._body(request),
                cast_to=object,
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
            async with stream:
                async for chunk in stream:
                    if text := state.add(chunk, calls):
                        yield Delta(text)
        except _FAILURES as error:
            if state.finish is None:  # an error after the end of the turn does not matter
                raise classify_error(
                    error, self._settings, has_started=stream is not None
                ) from None
        if state.finish is not None:
            stop = state.stop(calls)
            yield TurnEnd(
                stop,
                calls.assemble(),
                state.input_tokens,
                state.output_tokens,
                state.cache_read_tokens,
            )

    def _body(self, request: TurnRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._settings.model,
            "stream": True,
            "messages": [_message(message) for message in request.messages],
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = _tools(request.tools)
            if request.only_tool:
                body["tool_choice"] = {"type": "function", "function": {"name": request.only_tool}}
        if request.max_tokens:
            # Servers other than OpenAI's own accept only the old name.
            is_openai = not self._settings.base_url
            body["max_completion_tokens" if is_openai else "max_tokens"] = request.max_tokens
        return body


class _OpenAiTurn:
    """The state of one turn, built from its chunks."""

    def __init__(self) -> None:
        self.finish: str | None = None
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.cache_read_tokens = 0

    def add(self, chunk: Any, calls: ToolCallAssembler) -> str:
        """Add a chunk; return its text."""
        if not isinstance(chunk, Mapping):
            return ""
        if (usage := chunk.get("usage")) is not None:
            self.input_tokens = token_count(usage.get("prompt_tokens"))
            self.output_tokens = token_count(usage.get("completion_tokens"))
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
            self.cache_read_tokens = token_count(cached) or 0
        if not chunk.get("choices"):
            return ""
        choice, text = chunk["choices"][0], ""
        if (delta := choice.get("delta")) is not None and self.finish is None:
            for call in delta.get("tool_calls") or ():
                function = call.get("function") or {}
                id_, name = _text(call.get("id")), _text(function.get("name"))
                fragment = _text(function.get("arguments"))
                key = calls.key_of(call.get("index"), id_, name, fragment)
                calls.add(key, id_=id_, name=name, fragment=fragment)
            text = _text(delta.get("content"))
        self.finish = self.finish or choice.get("finish_reason") or None
        return text

    def stop(self, calls: ToolCallAssembler) -> Stop:
        """Return why the turn ended."""
        return _STOPS.get(str(self.finish), "tool_calls" if calls else "stop")


def _text(value: Any) -> str:
    """Return a text field; a value that should be a text but is not is returned as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.schema),
            },
        }
        for tool in tools
    ]


def _url(image: Image) -> str:
    return f"data:{image.mime_type};base64,{b64encode(image.data).decode()}"


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {
            "role": "tool",
            "tool_call_id": message.tool_call_id,
            "content": message.content,
        }
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.images:
        body["content"] = [
            {"type": "text", "text": message.content},
            *({"type": "image_url", "image_url": {"url": _url(image)}} for image in message.images),
        ]
    if message.tool_calls:
        body["tool_calls"] = [
            {
                "id": call.tool_call_id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": orjson.dumps(dict(call.arguments)).decode(),
                },
            }
            for call in message.tool_calls
        ]
    return body
