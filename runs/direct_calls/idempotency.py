"""Direct calls under an idempotency key: made once in 24 hours, and answered again with what they
came to.

Calls that a worker carries have this from their run's key (`runs.direct_calls.as_run`); what only
reads
is done anew each time.
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
from decisions.errors import Conflict
from decisions.infra.batches import BATCH_SIZE, run_in_batches
from runners.errors import RunnerFailed
from runners.tools.base import ToolResult
from runs.models import KeyedCall, OpenCall

KEY_LIFETIME = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class StoredOutcome:
    """What the call that had the key came to."""

    call_id: str
    result: ToolResult
    artifact_ids: Sequence[str] = ()
    marks: Mapping[str, Any] = field(default_factory=dict)


def find_stored_outcome(use: ToolCallRequest) -> StoredOutcome | None:
    """Return what the call under this key came to; None where the key is free.

    One that was cut off came to a failure with `details.effect` unknown: it is not made again.

    Raises:
        Conflict: The key was used for another call, or its call is still under way.
    """
    row = _rows(use).filter(created_at__gt=datetime.now(UTC) - KEY_LIFETIME).first()
    if row is None:
        return None
    if row.digest not in use.digests:
        raise Conflict("The idempotencyKey was used for another call.")
    if row.answer is None and OpenCall.objects.filter(id=row.call_id).exists():
        raise _under_way(row.call_id)
    row.refresh_from_db()  # it may have ended between the two looks
    return _cut_off(row) if row.answer is None else _unpacked(row)


def claim_key(
    use: ToolCallRequest, call_id: str, *, stands_for: ToolCallRequest | None = None
) -> None:
    """Take the key for a call, in the transaction in which it begins.

    Args:
        stands_for: the call that its caller made, where another is made instead.

    Raises:
        Conflict: The same call began at the same moment.
    """
    _rows(use).filter(created_at__lte=datetime.now(UTC) - KEY_LIFETIME).delete()
    try:
        with transaction.atomic():
            KeyedCall.objects.create(
                principal_id=use.principal_id,
                workspace_id=use.workspace_id,
                tool=use.tool,
                key=use.key,
                digest=(stands_for or use).digest,
                call_id=call_id,
                created_at=datetime.now(UTC),
            )
    except IntegrityError:
        raise _under_way(call_id) from None


def store_outcome(done: StoredOutcome) -> None:
    """Keep what a call came to under its key, in the transaction that tells its end; where it
    failed and did nothing, the key is free again.
    """
    kept, result = KeyedCall.objects.filter(call_id=done.call_id), done.result
    effect = ((result.error or {}).get("details") or {}).get("effect")
    if not result.ok and effect != "unknown":
        kept.delete()
        return
    told = {
        "ok": result.ok,
        "output": result.output,
        "error": result.error,
        "artifactIds": list(done.artifact_ids),
        "marks": dict(done.marks),
    }
    kept.update(answer=zlib.compress(orjson.dumps(told)))


def delete_expired_keys(now: datetime | None = None) -> int:
    """Delete keys whose 24 hours are over; return how many. Commits."""
    old = KeyedCall.objects.filter(created_at__lte=(now or datetime.now(UTC)) - KEY_LIFETIME)

    def forget_some() -> int:
        return old.filter(pk__in=list(old.values_list("pk", flat=True)[:BATCH_SIZE])).delete()[0]

    return run_in_batches(forget_some, full=BATCH_SIZE)


def _rows(use: ToolCallRequest) -> QuerySet[KeyedCall]:
    return KeyedCall.objects.filter(
        principal_id=use.principal_id, workspace_id=use.workspace_id, tool=use.tool, key=use.key
    )


def _under_way(call_id: str) -> Conflict:
    return Conflict(
        "The call under this idempotencyKey is still under way; ask again when it is over.",
        details={"callId": call_id},
    )


def _cut_off(row: KeyedCall) -> StoredOutcome:
    cut = RunnerFailed(
        "The call under this idempotencyKey was cut off, and nobody saw what it did; look, then use"
        " another key.",
        details={"effect": "unknown", "callId": row.call_id},
    )
    return StoredOutcome(row.call_id, ToolResult(False, error=cut.as_dict()))


def _unpacked(row: KeyedCall) -> StoredOutcome:
    told = orjson.loads(zlib.decompress(bytes(row.answer or b"")))
    result = ToolResult(told["ok"], told["output"], told["error"])
    return StoredOutcome(row.call_id, result, told["artifactIds"], told["marks"])
