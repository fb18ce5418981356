"""A stream of three tool calls, cut at every byte, cleanly or with an error, for both providers:
an incomplete call is never made.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, Literal

import anthropic
import httpx2
import openai
import pytest
from anthropic.types import RawMessageStreamEvent

from runners.llm.anthropic_messages import AnthropicMessages
from runners.llm.base import Delta, Done, LlmCall, LlmSettings, Message, Part, Restarted, ToolSpec
from runners.llm.gateway import Gateway
from runners.llm.openai_compatible import OpenAiCompatible
from runners.llm.provider import StreamCut, TurnEnd, TurnRequest
from tests.support.agent.model_turns import Call, Turn, anthropic_stream, openai_stream

Name = Literal["openai", "anthropic"]
CALLS = [
    Call("read_file", {"path": "game/scene/start.txt"}),
    Call("write_file", {"path": "a", "content": '你好 "{}"'}),
    Call("list_files"),
]
TURN = Turn("I read it.", CALLS, piece=30)
RECORDED: dict[Name, bytes] = {
    "openai": b"".join(openai_stream(TURN)),
    "anthropic": b"".join(anthropic_stream(TURN)),
}
# The offset where a turn is complete: after the event that holds its stop reason.
COMPLETE_AT: dict[Name, int] = {
    "openai": RECORDED["openai"].index(b"\n\n", RECORDED["openai"].index(b'"tool_calls"}]')) + 2,
    "anthropic": len(RECORDED["anthropic"]),
}


class TruncatedStream(httpx2.AsyncByteStream):
    """The given bytes of a response, then its end or an error."""

    def __init__(self, data: bytes, *, cleanly: bool) -> None:
        self._data, self._cleanly = data, cleanly

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._data:
            yield self._data
        if not self._cleanly:
            raise httpx2.RemoteProtocolError("peer closed connection")


class RecordedTransport(httpx2.AsyncBaseTransport):
    """Answers each request with the next truncated response."""

    def __init__(self) -> None:
        self.answers: list[TruncatedStream] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, stream=self.answers.pop(0))


class ReplayGateway:
    """A gateway whose server replays a recorded turn."""

    def __init__(self, name: Name) -> None:
        self.name, self._transport = name, RecordedTransport()
        settings = LlmSettings(name, "m", "http://model.test/v1", "k")
        stream_class = OpenAiCompatible if name == "openai" else AnthropicMessages
        self._provider = stream_class(settings, httpx2.AsyncClient(transport=self._transport))
        self._gateway = Gateway(settings, lambda _: self._provider)

    async def try_once(self, at: int, *, cleanly: bool) -> list[Delta | TurnEnd]:
        """Return the signals of one attempt whose stream is cut at a byte. The client library reads
        the stream without making a request, which would take most of the time.
        """
        answer = httpx2.Response(
            200,
            request=HTTP_REQUEST,
            stream=TruncatedStream(RECORDED[self.name][:at], cleanly=cleanly),
        )
        stream_class: Any = openai.AsyncStream if self.name == "openai" else anthropic.AsyncStream
        chunk: Any = object if self.name == "openai" else RawMessageStreamEvent
        client: Any = self._provider._client

        async def return_recorded(*_: Any, **__: Any) -> Any:
            return stream_class(cast_to=chunk, response=answer, client=client)

        if self.name == "openai":
            client.post = return_recorded
        else:
            client.messages.create = return_recorded
        received: list[Delta | TurnEnd] = []
        with suppress(StreamCut):
            async for signal in self._provider.turn(TURN_REQUEST):
                received.append(signal)
        return received

    async def stream_parts(self, at: int, *, cleanly: bool) -> list[Part]:
        """Return what the gateway yields when the first response is cut at a byte and the second is
        complete.
        """
        recorded = RECORDED[self.name]
        self._transport.answers = [
            TruncatedStream(recorded[:at], cleanly=cleanly),
            TruncatedStream(recorded, cleanly=True),
        ]
        chat = self._gateway.stream_chat(messages=TURN_REQUEST.messages, tools=TURN_REQUEST.tools)
        return [part async for part in chat]


def calls_of(received: Sequence[LlmCall]) -> list[tuple[str, object, str]]:
    """Return each call's name, arguments and problem."""
    return [(call.name, call.arguments, call.problem) for call in received]


READ_FILE = ToolSpec("read_file", "Read.", {"type": "object"})
TURN_REQUEST = TurnRequest([Message("user", "Go on.")], [READ_FILE])
HTTP_REQUEST = httpx2.Request("POST", "http://model.test/v1")
EXPECTED_CALLS = [(call.name, call.arguments, "") for call in CALLS]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_turn_cut_at_any_byte_before_its_end_yields_no_call(name: Name) -> None:
    async def every_byte() -> None:
        gateway = ReplayGateway(name)
        for at in range(len(RECORDED[name]) + 1):
            # Mostly clean ends, which could be mistaken for a complete stream; the rest are errors.
            received = await gateway.try_once(at, cleanly=at % 8 > 0)
            turn_ends = [signal for signal in received if isinstance(signal, TurnEnd)]
            assert len(turn_ends) == (at >= COMPLETE_AT[name]), at
            assert not turn_ends or calls_of(turn_ends[0].calls) == EXPECTED_CALLS, at

    asyncio.run(every_byte())


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_turn_that_was_cut_is_requested_again_and_yields_its_calls_once(name: Name) -> None:
    async def some_bytes() -> None:
        gateway = ReplayGateway(name)
        for at in range(0, len(RECORDED[name]), 41):
            received = await gateway.stream_parts(at, cleanly=bool(at % 2))
            calls = [part for part in received if isinstance(part, LlmCall)]
            assert calls_of(calls) == EXPECTED_CALLS, at
            assert isinstance(received[-1], Done), at
            assert received[-1].content == TURN.text, at
            assert any(isinstance(part, Restarted) for part in received) == (
                at < COMPLETE_AT[name]
            ), at

    asyncio.run(some_bytes())


def test_a_recorded_turn_ends_as_its_provider_ends_a_stream() -> None:
    assert RECORDED["openai"].endswith(b"data: [DONE]\n\n")
    assert RECORDED["anthropic"].endswith(b'data: {"type": "message_stop"}\n\n')
    assert all(len(recorded) > 1500 for recorded in RECORDED.values())
