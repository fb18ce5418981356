"""Writing audit events: the only code that inserts audit rows.

A row is written in the transaction of the change that it records, so both commit or neither does.
Each row has a MAC under a key outside the database, by which rows written by other means are
detected.
"""

from __future__ import annotations

import getpass
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from decisions.foundation.errors import Forbidden, NotFound, Refused
from decisions.foundation.security.keys import mac, mac_matches
from decisions.models import AuditEntry

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
    """An audit event about to be recorded; `metadata` must not contain secrets."""

    action: str
    actor: str
    resource_type: str
    resource_id: str
    tenant_id: str
    workspace_id: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


def canonical(*columns: Any, metadata: Any, created_at: str) -> bytes:
    """Return the bytes that the MAC covers: every column but the id, which the database assigns.

    Args:
        columns: tenant, workspace, action, actor, resource type, resource id.
        created_at: ISO 8601 in UTC with microseconds.

    Raises:
        ValueError: A number of the metadata is infinite, or is none.
    """
    return _ENCODER.encode([*columns, _as_stored(metadata), created_at]).encode()


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
    """Return metadata as PostgreSQL returns it: large floats as integers, no negative zero.

    Raises:
        ValueError: A number is infinite, or is none.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not JSON")
        return int(Decimal(repr(value))) if abs(value) >= 1e16 else value + 0.0
    if isinstance(value, Mapping):
        return {key: _as_stored(item) for key, item in value.items()}
    return [_as_stored(item) for item in value] if isinstance(value, list | tuple) else value


def entry_for(event: AuditEvent) -> AuditEntry:
    """Return the unsaved row of an event, MAC included, for statements that insert it."""
    entry = AuditEntry(
        tenant_id=event.tenant_id,
        workspace_id=event.workspace_id,
        action=event.action,
        actor=event.actor[:160],
        resource_type=event.resource_type,
        resource_id=event.resource_id[:128],
        metadata=dict(event.metadata),
        created_at=datetime.now(UTC),
    )
    entry.mac = mac(_PURPOSE, _message(entry))
    return entry


def record(*events: AuditEvent) -> None:
    """Write one row per event, in the caller's transaction."""
    record_all(events)


def record_all(events: Sequence[AuditEvent]) -> None:
    """Write one row per event in one statement, in order, in the caller's transaction."""
    if events:
        AuditEntry.objects.bulk_create([entry_for(event) for event in events])


def is_genuine(entry: AuditEntry) -> bool:
    """Return whether the row is unchanged since `record` wrote it.

    For rows that Django could read; `decisions.audit.stored` checks the stored text.
    """
    if entry.created_at is None:
        return False
    try:
        return is_mac_of(_message(entry), entry.mac)
    except (ValueError, RecursionError):
        return False


def is_mac_of(message: bytes, given: str) -> bool:
    """Return whether `given` is the MAC of a row with these canonical bytes."""
    return mac_matches(_PURPOSE, message, given)


def is_access_refusal(refusal: Refused, *, reads: bool) -> bool:
    """Return whether a refusal belongs in the audit log: a missing right, or for a call that writes
    also a resource that the caller cannot see.
    """
    return isinstance(refusal, Forbidden) or (not reads and isinstance(refusal, NotFound))
