"""The one input gate: what bytes become JSON values at any door (reliability rule 10).

At most `limit` bytes, 32 levels, 100 000 values; no NaN or infinity, no duplicate key, no NUL, no
lone surrogate, no integer beyond 64 bits.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from decisions.errors import BodyTooLarge, MalformedBody, NotUnicode

BODY_LIMIT = 1024 * 1024
CALL_LIMIT = 8 * 1024 * 1024  # tool calls and MCP lines
MAX_DEPTH = 32
MAX_VALUES = 100_000


def _refuse_constant(name: str) -> NoReturn:
    raise MalformedBody(f"The JSON holds {name}, which is no number.")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise MalformedBody("The JSON holds an object with the same key twice.")
    return made


def load_json(raw: bytes, *, limit: int = BODY_LIMIT) -> Any:
    """Return the JSON value of the bytes.

    Raises:
        BodyTooLarge: More than `limit` bytes.
        MalformedBody: Not UTF-8, not JSON, or JSON with something the gate refuses.
    """
    if len(raw) > limit:
        raise BodyTooLarge(f"The body has {len(raw)} bytes; at most {limit} are taken.")
    try:
        value = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_refuse_duplicates,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError:
        raise MalformedBody("The body is not valid UTF-8.") from None
    except RecursionError:
        raise MalformedBody(f"The JSON is nested deeper than {MAX_DEPTH} levels.") from None
    except ValueError as error:
        raise MalformedBody(f"The body is not valid JSON: {str(error)[:120]}.") from None
    check_value(value)
    return value


def check_value(value: Any) -> None:
    """Refuse a value that is nested too deep, too numerous, or holds text that no database takes.

    Raises:
        MalformedBody: The first thing found wrong.
    """
    todo: list[tuple[Any, int]] = [(value, 1)]
    seen = 0
    while todo:
        item, depth = todo.pop()
        seen += 1
        if depth > MAX_DEPTH:
            raise MalformedBody(f"The JSON is nested deeper than {MAX_DEPTH} levels.")
        if seen > MAX_VALUES:
            raise MalformedBody(f"The JSON holds more than {MAX_VALUES} values.")
        todo.extend((child, depth + 1) for child in _children(item))


def _children(item: Any) -> list[Any]:
    """Return what a value holds; refuse the value itself where it is wrong."""
    if isinstance(item, str):
        _check_text(item)
    elif isinstance(item, dict):
        return [*item.keys(), *item.values()]
    elif isinstance(item, list):
        return item
    elif (isinstance(item, float) and math.isinf(item)) or (
        isinstance(item, int) and not -(2**63) <= item < 2**63
    ):
        raise MalformedBody("The JSON holds a number that is out of range.")
    return []


def _check_text(text: str) -> None:
    if "\0" in text:
        raise MalformedBody("A text in the JSON holds a NUL character.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotUnicode("A text in the JSON holds half a surrogate pair.") from None
