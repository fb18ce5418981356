"""Parsing of JSON input, the same for every API.

At most `limit` bytes, 32 levels, 100 000 values; no NaN or infinity, no duplicate key, no NUL, no
lone surrogate, no integer beyond 64 bits.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from decisions.foundation.errors import BodyTooLarge, MalformedBody, NotUnicode
from decisions.foundation.validation.json_values import has_too_many_values

BODY_LIMIT = 1024 * 1024
CALL_LIMIT = 8 * 1024 * 1024  # tool calls and MCP lines
MAX_DEPTH = 32
MAX_VALUES = 100_000


def _refuse_constant(name: str) -> NoReturn:
    raise MalformedBody(f"The JSON contains {name}, which is not a JSON number.")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise MalformedBody("The JSON contains an object with a duplicate key.")
    return fields


def _too_many_values() -> MalformedBody:
    return MalformedBody(f"The JSON contains more than {MAX_VALUES} values.")


def load_json(raw: bytes, *, limit: int = BODY_LIMIT) -> Any:
    """Parse and validate JSON bytes.

    Raises:
        BodyTooLarge: More than `limit` bytes.
        MalformedBody: Not UTF-8, not JSON, or outside the limits above.
    """
    if len(raw) > limit:
        raise BodyTooLarge(f"The body has {len(raw)} bytes; at most {limit} are accepted.")
    if has_too_many_values(raw, MAX_VALUES):
        raise _too_many_values()  # before they are made, which would take a second
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
    """Refuse a value that is nested too deep, has too many values, or text that cannot be stored.

    Raises:
        MalformedBody: Names the first problem.
    """
    todo: list[tuple[Any, int]] = [(value, 1)]
    count = 1
    while todo:
        item, depth = todo.pop()
        if depth > MAX_DEPTH:
            raise MalformedBody(f"The JSON is nested deeper than {MAX_DEPTH} levels.")
        children = _children(item)
        count += len(children)
        if count > MAX_VALUES:
            raise _too_many_values()
        todo.extend((child, depth + 1) for child in children)


def _children(item: Any) -> list[Any]:
    """Validate one value and return the values it contains, field names included."""
    if isinstance(item, str):
        _check_text(item)
    elif isinstance(item, dict):
        return [*item.keys(), *item.values()]
    elif isinstance(item, list):
        return item
    elif (isinstance(item, float) and math.isinf(item)) or (
        isinstance(item, int) and not -(2**63) <= item < 2**63
    ):
        raise MalformedBody("The JSON contains a number that is out of range.")
    return []


def _check_text(text: str) -> None:
    if "\0" in text:
        raise MalformedBody("A string in the JSON contains a NUL character.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotUnicode("A string in the JSON contains a lone surrogate.") from None
