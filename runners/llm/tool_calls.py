"""Tool calls as they come in pieces, and what is made of them when the turn is closed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from runners.llm.base import LlmCall
from runners.llm.stream_events import StreamCut

MAX_CALLS = 64  # of one turn that are made; what comes behind them is told
MAX_KEPT = 512  # of one turn: a server that runs away is cut off
MAX_TOKENS = 10**12  # more than that nobody has counted
MAX_TEXT = 4 * 1024 * 1024  # characters of one turn: a server that runs away is cut off
MAX_DEPTH = 32
_NOT_OF_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_ID = re.compile(r"[!-~]{1,128}")  # others are not sent back as they came by every server


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)


class ToolCallAssembler:
    """The calls of one turn, by whatever their server tells them apart with."""

    def __init__(self) -> None:
        self._calls: dict[object, _Call] = {}
        self._size = 0

    def add(
        self, key: object, *, id_: str | None = None, name: str | None = None, piece: str = ""
    ) -> None:
        """Take a piece of a call.

        Raises:
            Cut: There is no end to it.
        """
        call = self._calls.setdefault(key, _Call())
        call.id = call.id or (id_ or "")
        call.name = call.name or (name or "")
        call.pieces.append(piece)
        self._size += len(piece)
        if len(self._calls) > MAX_KEPT or self._size > MAX_TEXT:
            raise StreamCut(f"the answer has over {MAX_KEPT} calls or {MAX_TEXT} characters")

    def key_of(self, index: int | None, id_: str | None, name: str | None = None) -> object:
        """Return what tells a call apart: its index, or where a server gives none, the id that it
        begins with; pieces without either belong to the call before. Some servers give every call
        of a turn the index 0: a name under another id begins another call.
        """
        call = self._calls.get(index)
        if index is not None and (call is None or not (id_ and name) or call.id in ("", id_)):
            return index
        if id_ and all(call.id != id_ for call in self._calls.values()):
            return len(self._calls), id_
        return next(reversed(self._calls), (0, id_))

    def whole(self) -> list[LlmCall]:
        """Return the calls in their order, each under an id of its own."""
        made: list[LlmCall] = []
        taken: set[str] = set()
        for number, call in enumerate(self._calls.values(), 1):
            made.append(_made(call, number, taken))
            taken.add(made[-1].tool_call_id)
        return made

    def __bool__(self) -> bool:
        return bool(self._calls)


def _made(call: _Call, number: int, taken: set[str]) -> LlmCall:
    name = _NOT_OF_A_NAME.sub("_", call.name)[:64] or "nameless"
    own_id = call.id if _ID.fullmatch(call.id) else f"call_{number}"
    if own_id in taken:  # of two under one id nobody can tell whether they are two
        told = f"its id {own_id[:64]!r} is that of another call of this turn, so it was not made"
        return LlmCall(f"{own_id[:100]}_{number}", name, {}, told)
    if number > MAX_CALLS:
        told = f"no more than {MAX_CALLS} calls of one turn are made, and it came behind them"
        return LlmCall(own_id, name, {}, told)
    arguments, problem = parse_arguments("".join(call.pieces))
    return LlmCall(own_id, name, arguments, problem)


def parse_arguments(text: str) -> tuple[Mapping[str, Any], str]:
    """Return a call's arguments and "", or nothing and what is wrong with them."""
    if not text.strip():
        return {}, ""
    try:
        read = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return {}, f"its arguments are no JSON: {error}"[:200]
    if not isinstance(read, dict):
        return {}, "its arguments are no JSON object"
    if _depth(read) > MAX_DEPTH:
        return {}, f"its arguments are nested deeper than {MAX_DEPTH}"
    return read, ""


def _depth(value: object) -> int:
    deepest, todo = 0, [(value, 1)]
    while todo:
        node, depth = todo.pop()
        deepest = max(deepest, depth)
        inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        todo += [(child, depth + 1) for child in inner]
    return deepest


def token_count(value: object) -> int | None:
    """Return how many tokens a server says; None where that is no such number."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MAX_TOKENS else None
