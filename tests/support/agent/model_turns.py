"""The scripted model's turns, and their encoding in the streams of both providers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """A tool call; `arguments` that are text are sent unchanged, even if they are invalid JSON."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""

    @property
    def text(self) -> str:
        """Return the arguments as they are sent."""
        arguments = self.arguments
        if isinstance(arguments, str):
            return arguments
        return json.dumps(arguments, ensure_ascii=False)


@dataclass(frozen=True)
class Turn:
    """One answer of the model, and the faults of its response.

    Attributes:
        cut_at: close the connection after this number of bytes of the stream.
        cut_cleanly: end the stream regularly at `cut_at`; otherwise in the middle of a chunk.
        stall_at: pause after this number of bytes until the test sets `ModelServer.go_on`.
        status: if not 200, send `body` and `headers` instead of a stream.
        cached: the input tokens that the prompt cache had, and (Anthropic) that it then got.
        reports_usage: whether the stream reports the token usage.
        junk: the data of an additional event before the end of the stream.
        stop: the stop reason, if not the one that fits the turn; "" sends none.
        pause_s: the pause between events, in seconds.
        piece: the number of characters in each piece of text or arguments.
    """

    text: str = ""
    calls: Sequence[Call] = ()
    tokens: tuple[int, int] = (100, 20)
    cached: tuple[int, int] = (0, 0)
    cut_at: int | None = None
    cut_cleanly: bool = False
    stall_at: int | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = '{"error": {"message": "not now", "type": "server_error"}}'
    reports_usage: bool = True
    junk: str = ""
    stop: str | None = None
    pause_s: float = 0.0
    piece: int = 7


def pieces_of(text: str, length: int) -> Iterator[str]:
    """Split a text into short pieces, as providers' servers do."""
    for start in range(0, len(text), length):
        yield text[start : start + length]


def openai_stream(turn: Turn) -> list[bytes]:
    """Return the events of a chat completion."""
    chunks = [_chunk({"role": "assistant", "content": ""})]
    chunks += [_chunk({"content": piece}) for piece in pieces_of(turn.text, turn.piece)]
    for number, call in enumerate(turn.calls):
        function = {"name": call.name, "arguments": ""}
        head = {"index": number, "id": call.id or f"call_{number}", "type": "function"}
        chunks.append(_chunk({"tool_calls": [{**head, "function": function}]}))
        chunks += [
            _chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
            for piece in pieces_of(call.text, turn.piece)
        ]
    usual_stop = "tool_calls" if turn.calls else "stop"
    finish = usual_stop if turn.stop is None else turn.stop
    if turn.junk:
        chunks.append(turn.junk)
    if finish:
        chunks.append(_chunk({}, finish))
    if turn.reports_usage:
        input_tokens, output_tokens = turn.tokens
        usage = {
            "prompt_tokens": input_tokens,
            "completion_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
            "prompt_tokens_details": {"cached_tokens": turn.cached[0]},
        }
        chunks.append(json.dumps({**_HEAD, "choices": [], "usage": usage}))
    return [f"data: {chunk}\n\n".encode() for chunk in [*chunks, "[DONE]"]]


_HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}


def _chunk(delta: Mapping[str, Any], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return json.dumps({**_HEAD, "choices": [choice]}, ensure_ascii=False)


def anthropic_stream(turn: Turn) -> list[bytes]:
    """Return the events of a message."""
    input_tokens, output_tokens = turn.tokens if turn.reports_usage else (0, 0)
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": input_tokens - sum(turn.cached),
            "cache_read_input_tokens": turn.cached[0],
            "cache_creation_input_tokens": turn.cached[1],
            "output_tokens": 1,
        },
    }
    events: list[tuple[str, Mapping[str, Any] | str]] = [
        ("message_start", {"message": message}),
        ("ping", {}),
    ]
    blocks: list[tuple[Mapping[str, Any], list[Mapping[str, Any]]]] = []
    if turn.text:
        deltas_of_text = [
            {"type": "text_delta", "text": piece} for piece in pieces_of(turn.text, turn.piece)
        ]
        blocks.append(({"type": "text", "text": ""}, [*deltas_of_text]))
    for number, call in enumerate(turn.calls):
        block: Mapping[str, Any] = {
            "type": "tool_use",
            "id": call.id or f"toolu_{number}",
            "name": call.name,
            "input": {},
        }
        parts = ["", *pieces_of(call.text, turn.piece)]
        blocks.append(
            (block, [{"type": "input_json_delta", "partial_json": part} for part in parts])
        )
    for index, (block, deltas) in enumerate(blocks):
        events.append(("content_block_start", {"index": index, "content_block": block}))
        events += [("content_block_delta", {"index": index, "delta": delta}) for delta in deltas]
        events.append(("content_block_stop", {"index": index}))
    if turn.junk:
        events.append(("content_block_delta", turn.junk))
    usual_stop = "tool_use" if turn.calls else "end_turn"
    stop = {"stop_reason": usual_stop if turn.stop is None else turn.stop, "stop_sequence": None}
    if turn.stop != "":
        events.append(("message_delta", {"delta": stop, "usage": {"output_tokens": output_tokens}}))
        events.append(("message_stop", {}))
    return [_event(name, data) for name, data in events]


def _event(name: str, data: Mapping[str, Any] | str) -> bytes:
    if not isinstance(data, str):
        data = json.dumps({"type": name, **data}, ensure_ascii=False)
    return f"event: {name}\ndata: {data}\n\n".encode()


def complete(result: str = "Done.", **more: Any) -> Turn:
    """Return a turn in which the model completes the task."""
    return Turn("", [Call("attempt_completion", {"result": result, **more})])


def write_call(path: str, content: str, *, id_: str = "w", dry: bool = False) -> Call:
    """Return a call that appends to a file."""
    args = {"path": path, "content": content, "mode": "append", "dryRun": dry}
    return Call("write_to_file", args, id_)
