"""The sole writer of audit rows.

A row is written in the caller's transaction, so it is there if and only if what it tells happened.
Each carries a MAC under a key kept outside the database: a row put in by other means is told from
ours.
"""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import orjson

from decisions.errors import Forbidden, NotFound, Refused
from decisions.models import AuditEntry
from decisions.security.keys import mac, mac_matches

_PURPOSE = "audit"
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def command_actor() -> str:
    """Return the actor of a management command: the operating system user who runs it, by number if
    the user has no name (as in some containers).
    """
    try:
        return f"command:{getpass.getuser()}"
    except (KeyError, OSError):
        return f"command:{os.getuid()}"


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """What an audit row tells; secrets never enter `metadata`."""

    action: str
    actor: str
    resource_type: str
    resource_id: str
    tenant_id: str
    workspace_id: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


def canonical(*columns: Any, metadata: Any, created_at: str) -> bytes:
    """Return the bytes that the MAC covers: every column but the id, which the database gives.

    Args:
        columns: tenant, workspace, action, actor, resource type and id.
        created_at: ISO 8601 in UTC with microseconds.
    """
    return _ENCODER.encode([*columns, _as_stored(metadata), created_at]).encode()


def canonical_forms(*columns: str, metadata: str, created_at: str) -> Iterator[bytes]:
    """Yield what `canonical` returns for metadata as JSON text, a quick guess first: it is right
    but for floats, integers of many digits and texts that are not ASCII.

    Raises:
        ValueError: It is no JSON.
    """
    with suppress(orjson.JSONDecodeError, TypeError):  # half a surrogate pair, say
        guess = [*columns, orjson.loads(metadata), created_at]
        if (told := orjson.dumps(guess, option=orjson.OPT_SORT_KEYS)).isascii():
            yield told
    yield canonical(*columns, metadata=json.loads(metadata), created_at=created_at)


def _message(entry: AuditEntry) -> bytes:
    return canonical(
        entry.tenant_id,
        entry.workspace_id,
        entry.action,
        entry.actor,
        entry.resource_type,
        entry.resource_id,
        metadata=entry.metadata,
        created_at=entry.created_at.astimezone(UTC).isoformat(timespec="microseconds"),
    )


def _as_stored(value: Any) -> Any:
    """Return metadata as PostgreSQL gives it back: a large float as the integer it was written as,
    no negative zero.
    """
    if isinstance(value, float):
        return int(Decimal(repr(value))) if abs(value) >= 1e16 else value + 0.0
    if isinstance(value, Mapping):
        return {key: _as_stored(item) for key, item in value.items()}
    return [_as_stored(item) for item in value] if isinstance(value, list | tuple) else value


def entry_for(deed: AuditEvent) -> AuditEntry:
    """Return the unsaved row of a deed, MAC included: for statements that insert it themselves."""
    entry = AuditEntry(
        tenant_id=deed.tenant_id,
        workspace_id=deed.workspace_id,
        action=deed.action,
        actor=deed.actor[:160],
        resource_type=deed.resource_type,
        resource_id=deed.resource_id[:128],
        metadata=dict(deed.metadata),
        created_at=datetime.now(UTC),
    )
    entry.mac = mac(_PURPOSE, _message(entry))
    return entry


def record(*deeds: AuditEvent) -> None:
    """Write one row a deed, in the caller's transaction."""
    record_all(deeds)


def record_all(deeds: Sequence[AuditEvent]) -> None:
    """Write many rows in one statement, in order."""
    if deeds:
        AuditEntry.objects.bulk_create([entry_for(deed) for deed in deeds])


def is_genuine(entry: AuditEntry) -> bool:
    """Tell whether the row still is what our writer wrote."""
    return is_mac_of(_message(entry), entry.mac)


def is_mac_of(message: bytes, given: str) -> bool:
    """Tell whether our writer gave this MAC to a row of these canonical bytes."""
    return mac_matches(_PURPOSE, message, given)


def is_access_refusal(refusal: Refused, *, reads: bool) -> bool:
    """Tell whether a refusal is one that the audit log tells of: for want of a right; and, of a
    call that would have changed something, for what is not there for this caller.
    """
    return isinstance(refusal, Forbidden) or (not reads and isinstance(refusal, NotFound))
