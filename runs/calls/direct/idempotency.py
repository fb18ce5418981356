"""Idempotency keys of direct calls: within 24 hours a call is made once per key, and its outcome is
returned again.

Calls that are performed as a run use the run's key instead (`runs.calls.direct.as_run`). A call
that only reads is repeated.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from decisions.authorization.authorize import ToolCallRequest
from decisions.foundation.errors import Conflict
from decisions.foundation.infra.batches import delete_in_batches
from runners.errors import RunnerFailed
from runners.tools.base import ToolResult
from runs.models import KeyedCall, OpenCall

KEY_LIFETIME = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class StoredOutcome:
    """The outcome of an earlier call with the same key."""

    call_id: str
    result: ToolResult
    artifact_ids: Sequence[str] = ()
    marks: Mapping[str, Any] = field(default_factory=dict)


def find_stored_outcome(use: ToolCallRequest) -> StoredOutcome | None:
    """Return the outcome of the call with this key, or None if the key is unused.

    If that call was interrupted, the outcome is a failure with `details.effect` unknown: it is not
    repeated.

    Raises:
        Conflict: The key was used for another call, or with a higher trust level, or its call is
            still running.
    """
    row = _rows(use).filter(created_at__gt=datetime.now(UTC) - KEY_LIFETIME).first()
    if row is None:
        return None
    if row.digest not in use.digests:
        raise Conflict("The idempotencyKey was used for another call.")
    if row.trust == "local" and use.trust != "local":
        raise Conflict("The idempotencyKey was used from this machine; use another key.")
    if row.answer is None and OpenCall.objects.filter(id=row.call_id).exists():
        raise _still_running(row.call_id)
    row.refresh_from_db()  # the call may have ended between the two queries
    return _interrupted_outcome(row) if row.answer is None else _outcome_from(row)


def claim_key(
    use: ToolCallRequest, call_id: str, *, fallback_for: ToolCallRequest | None = None
) -> None:
    """Claim the key for a call, in the transaction that starts the call.

    Args:
        fallback_for: the caller's own call, if this one replaces it; the key belongs to that one.

    Raises:
        Conflict: A concurrent request claimed the key first.
    """
    _rows(use).filter(created_at__lte=datetime.now(UTC) - KEY_LIFETIME).delete()
    try:
        with transaction.atomic():
            KeyedCall.objects.create(
                principal_id=use.principal_id,
                workspace_id=use.workspace_id,
                tool=use.tool,
                key=use.key,
                digest=(fallback_for or use).digest,
                trust=use.trust,
                call_id=call_id,
                created_at=datetime.now(UTC),
            )
    except IntegrityError:
        raise _still_running(call_id) from None


def store_outcome(outcome: StoredOutcome) -> None:
    """Store a call's outcome under its key, in the transaction that records the call's end. After a
    failure without effect the key is deleted, so the call can be repeated.
    """
    rows, result = KeyedCall.objects.filter(call_id=outcome.call_id), outcome.result
    effect = ((result.error or {}).get("details") or {}).get("effect")
    if not result.ok and effect != "unknown":
        rows.delete()
        return
    data = {
        "ok": result.ok,
        "output": result.output,
        "error": result.error,
        "artifactIds": list(outcome.artifact_ids),
        "marks": dict(outcome.marks),
    }
    rows.update(answer=zlib.compress(orjson.dumps(data)))


def delete_expired_keys() -> int:
    """Delete keys older than KEY_LIFETIME; return how many. Commits."""
    old = KeyedCall.objects.filter(created_at__lte=datetime.now(UTC) - KEY_LIFETIME)
    return delete_in_batches(old)


def _rows(use: ToolCallRequest) -> QuerySet[KeyedCall]:
    return KeyedCall.objects.filter(
        principal_id=use.principal_id, workspace_id=use.workspace_id, tool=use.tool, key=use.key
    )


def _still_running(call_id: str) -> Conflict:
    return Conflict(
        "The call with this idempotencyKey is still running; repeat the request once it has ended.",
        details={"callId": call_id},
    )


def _interrupted_outcome(row: KeyedCall) -> StoredOutcome:
    error = RunnerFailed(
        "The call with this idempotencyKey was interrupted, and its effect is unknown; check what"
        " it did, then use another key.",
        details={"effect": "unknown", "callId": row.call_id},
    )
    return StoredOutcome(row.call_id, ToolResult(False, error=error.as_dict()))


def _outcome_from(row: KeyedCall) -> StoredOutcome:
    data = orjson.loads(zlib.decompress(bytes(row.answer or b"")))
    result = ToolResult(data["ok"], data["output"], data["error"])
    return StoredOutcome(row.call_id, result, data["artifactIds"], data["marks"])
