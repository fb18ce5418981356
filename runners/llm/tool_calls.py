"""Assemble the tool calls of a turn from the fragments of its stream."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from decisions.foundation.validation.json_values import has_too_many_values
from runners.llm.base import LlmCall
from runners.llm.provider import StreamCut

MAX_CALLS = 64  # made per turn; later calls are reported as invalid
MAX_RECEIVED = 512  # calls per turn, after which the stream is aborted
MAX_TOKENS = 10**12  # a larger reported count is ignored
MAX_TEXT = 4 * 1024 * 1024  # characters per turn, after which the stream is aborted
MAX_DEPTH, MAX_VALUES = 32, 100_000
_INVALID_NAME_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]")
_ID = re.compile(r"[!-~]{1,128}")  # not every server accepts other ids when they are sent back


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    fragments: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether the arguments received so far are complete JSON."""
        try:
            orjson.loads("".join(self.fragments))
        except orjson.JSONDecodeError:
            return False
        return True


class ToolCallAssembler:
    """Collects the calls of one turn under the key that distinguishes them (`key_of`)."""

    def __init__(self) -> None:
        self._calls: dict[object, _Call] = {}
        self._newest: dict[int, object] = {}  # the key of each index's newest call
        self._size = 0

    def add(
        self, key: object, *, id_: str | None = None, name: str | None = None, fragment: str = ""
    ) -> None:
        """Add a fragment of a call's arguments.

        Raises:
            StreamCut: The turn exceeds MAX_RECEIVED calls or MAX_TEXT characters.
        """
        call = self._calls.setdefault(key, _Call())
        call.id = call.id or (id_ or "")
        call.name = call.name or (name or "")
        call.fragments.append(fragment)
        self._size += len(fragment)
        if len(self._calls) > MAX_RECEIVED or self._size > MAX_TEXT:
            raise StreamCut(f"the reply has over {MAX_RECEIVED} calls or {MAX_TEXT} characters")

    def key_of(
        self, index: int | None, id_: str | None, name: str | None = None, fragment: str = ""
    ) -> object:
        """Return the key of the call to which a fragment belongs.

        A fragment continues the newest call of its index, or without an index the newest call.
        Some servers send no index, or 0 for every call of a turn, and some of these no ids either:
        a new id starts another call, and so does a name after a call whose arguments are complete.
        """
        newest = next(reversed(self._calls), None) if index is None else self._newest.get(index)
        if newest is None or self._starts_another(self._calls[newest], index, id_, name, fragment):
            is_free = index is not None and index not in self._calls
            newest = index if is_free else (len(self._calls), id_)
            if index is not None:
                self._newest[index] = newest
        return newest

    @staticmethod
    def _starts_another(
        call: _Call, index: int | None, id_: str | None, name: str | None, fragment: str
    ) -> bool:
        if id_ and call.id:
            return id_ != call.id and (index is None or bool(name))
        if id_ or not (name and call.name):
            return False
        if name != call.name:
            return True
        # Some servers that send an index repeat the name in every fragment.
        return call.is_complete and (index is None or fragment.lstrip().startswith("{"))

    def assemble(self) -> list[LlmCall]:
        """Return the calls in their order, with unique ids."""
        calls: list[LlmCall] = []
        used_ids: set[str] = set()
        for number, call in enumerate(self._calls.values(), 1):
            calls.append(_assembled(call, number, used_ids))
            used_ids.add(calls[-1].tool_call_id)
        return calls

    def __bool__(self) -> bool:
        return bool(self._calls)


def _assembled(call: _Call, number: int, used_ids: set[str]) -> LlmCall:
    name = _INVALID_NAME_CHARACTERS.sub("_", call.name)[:64] or "nameless"
    own_id = call.id if _ID.fullmatch(call.id) else f"call_{number}"
    if own_id in used_ids:  # it may be the same call sent twice
        problem = f"another call of this turn has the same id {own_id[:64]!r}, so it was not made"
        return LlmCall(f"{own_id[:100]}_{number}", name, {}, problem)
    if number > MAX_CALLS:
        problem = f"only the first {MAX_CALLS} calls of a turn are made"
        return LlmCall(own_id, name, {}, problem)
    arguments, problem = parse_arguments("".join(call.fragments))
    return LlmCall(own_id, name, arguments, problem)


def parse_arguments(text: str) -> tuple[Mapping[str, Any], str]:
    """Return a call's arguments and "", or {} and what is wrong with them."""
    if not text.strip():
        return {}, ""
    if has_too_many_values(text.encode(errors="replace"), MAX_VALUES):
        return {}, f"its arguments have more than {MAX_VALUES} values"
    try:
        arguments = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return {}, f"its arguments are not valid JSON: {error}"[:200]
    if not isinstance(arguments, dict):
        return {}, "its arguments are not a JSON object"
    if _depth(arguments) > MAX_DEPTH:
        return {}, f"its arguments are nested deeper than {MAX_DEPTH}"
    return arguments, ""


def _depth(value: object) -> int:
    deepest, todo = 0, [(value, 1)]
    while todo:
        node, depth = todo.pop()
        deepest = max(deepest, depth)
        inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        todo += [(child, depth + 1) for child in inner]
    return deepest


def token_count(value: object) -> int | None:
    """Return a token count that a server reports; None if it is not a plausible number."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MAX_TOKENS else None
