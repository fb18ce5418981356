"""Audit rows as the database stores them, and what is wrong with one.

The rows are read without models: a column that cannot be converted, such as a time in the year
12000 or text that is not UTF-8, makes a query of models fail for every row of its result.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import orjson
from django.db import Error, connection

from decisions.audit.record import canonical, is_mac_of

if TYPE_CHECKING:
    from decisions.models import AuditEntry

LOWEST_ID, HIGHEST_ID = -(2**63), 2**63 - 1
_POSTGRESQL_TIME = (
    "CASE WHEN e.created_at >= '0001-01-01+00' AND e.created_at < '10000-01-01+00'"
    " THEN to_char(e.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') END"
)
_SQLITE_TIME = "+e.created_at"  # an expression, because sqlite3 would parse the column
_TEXT = ("tenant_id", "workspace_id", "action", "actor", "resource_type", "resource_id", "metadata")


class StoredRow(NamedTuple):
    """An audit row; a column of a row that Continuity did not write can be of any type."""

    id: int
    tenant_id: str
    workspace_id: str
    action: str
    actor: str
    resource_type: str
    resource_id: str
    metadata: str
    created_at: str  # in UTC; SQLite omits a zero fraction
    mac: str

    def __str__(self) -> str:
        return f"{self.action} {self.resource_type} {self.resource_id} by {self.actor}"


def fields_of(row: StoredRow | AuditEntry, metadata: Any) -> dict[str, Any]:
    """Return what the API and bundles have of a row alike: all but its time, its MAC and its seal.

    Args:
        metadata: the row's, as a JSON value.
    """
    return {
        "id": row.id,
        "tenantId": row.tenant_id,
        "workspaceId": row.workspace_id,
        "action": row.action,
        "actor": row.actor,
        "resourceType": row.resource_type,
        "resourceId": row.resource_id,
        "metadata": metadata,
    }


def row_columns() -> str:
    """Return the columns of a StoredRow for a SELECT from the audit log as `e`."""
    if connection.vendor == "postgresql":
        text = [f"e.{name}::text" for name in _TEXT]
        return ", ".join(["e.id", *text, _POSTGRESQL_TIME, "e.mac::text"])
    return ", ".join(["e.id", *(f"e.{name}" for name in _TEXT), _SQLITE_TIME, "e.mac"])


def fetch_stored(statement: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Execute a query and return its rows; bytes that are not UTF-8 become lone surrogates."""
    try:
        return _fetch(statement, params)
    except Error:
        if connection.vendor == "postgresql":  # which stores no such text
            raise
    with _lenient_text():  # slower
        return _fetch(statement, params)


def _fetch(statement: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


@contextmanager
def _lenient_text() -> Iterator[None]:
    """Let SQLite return text that is not UTF-8."""
    database = connection.connection
    database.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    try:
        yield
    finally:
        database.text_factory = str


def fault_of(row: StoredRow) -> str | None:
    """Return why the row is not what `record` wrote; None if it is."""
    try:
        if set(map(type, row[1:])) != {str}:
            return "a column is not text"
        metadata, at = parse_metadata(row.metadata), iso(row.created_at)
        is_genuine = any(is_mac_of(form, row.mac) for form in _canonical_forms(row, metadata, at))
    except (ValueError, RecursionError) as unreadable:
        return str(unreadable) or type(unreadable).__name__
    return None if is_genuine else "its MAC is wrong"


def _canonical_forms(row: StoredRow, metadata: Any, at: str) -> Iterator[bytes]:
    """Yield candidates for `canonical`, the fast one first.

    The fast candidate, by orjson, differs only for floats, long integers and non-ASCII text.
    """
    try:
        fast = orjson.dumps([*row[1:7], metadata, at], option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a lone surrogate, for example
        "".join(row[1:]).encode()  # the text itself must be UTF-8, only its escapes may not
    else:
        if fast.isascii():
            yield fast
    yield canonical(*row[1:7], metadata=metadata, created_at=at)


def parse_metadata(text: str) -> Any:
    """Return metadata from its stored text.

    Raises:
        ValueError: The text is not the JSON of one value, written as Continuity writes it. Other
            texts of the same value are refused, because other readers may read them differently:
            a repeated key, or on SQLite a key with an escape.
    """
    is_sqlite = connection.vendor == "sqlite"
    encode = _ASCII.encode if is_sqlite else _UNICODE.encode
    try:
        fast = orjson.loads(text)
        if encode(fast) == text:  # so it repeats no key, and no number loses a digit
            return fast
    except (orjson.JSONDecodeError, RecursionError):
        pass  # a lone surrogate, for example
    metadata = _DECODER.decode(text)
    if is_sqlite and encode(metadata) != text:
        raise ValueError("its metadata is not written as Continuity writes it")
    return metadata


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {json.dumps(twice)} occurs twice")
    return found


def _float(text: str) -> float:
    value = float(text)
    if Decimal(repr(value)) != Decimal(text):
        raise ValueError(f"the number {text[:40]} is out of range or too precise")
    return value


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_ASCII, _UNICODE = json.JSONEncoder(), json.JSONEncoder(ensure_ascii=False)
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)


def iso(at: str) -> str:
    """Convert a time as the database returns it to the form that the MAC covers.

    Raises:
        ValueError: It is not stored as Django stores a time.
    """
    if at[10:11] == " " and len(at) == 26:
        return f"{at[:10]}T{at[11:]}+00:00"
    if at[10:11] == " " and len(at) == 19:
        return f"{at[:10]}T{at[11:]}.000000+00:00"
    raise ValueError("its time is not written as Continuity writes it")


def id_after(row_id: int) -> int:
    """Return the next id that a row can have; the highest id again after itself."""
    return min(row_id + 1, HIGHEST_ID)


def moment_of(created_at: Any) -> datetime | None:
    """Return a row's time of creation; None if the column is not a time."""
    try:
        return datetime.fromisoformat(iso(created_at))
    except (ValueError, TypeError):
        return None
