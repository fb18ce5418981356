"""A cache of targets by caller. The statement that starts a call tests the target's precondition:
that it has not changed since it was read.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import UTC

from django.db import connection

from decisions.foundation.infra.preconditions import Precondition
from runners.models import ExecutionTarget, PluginClient
from runners.paired_browser.choice import is_paired_browser, state_of_browser
from runners.targets.targets import Caller

_CACHE_MAX = 128
_cache: OrderedDict[tuple[Caller, str], ExecutionTarget] = OrderedDict()


def cached_target(caller: Caller, target_id: str) -> ExecutionTarget | None:
    """Return the cached target of this caller and id without a query, or None. Thread-safe."""
    return _cache.get((caller, target_id))


def cache_target(caller: Caller, target: ExecutionTarget) -> None:
    """Cache a target that was read for a caller's call."""
    _cache[caller, target.id] = target
    while len(_cache) > _CACHE_MAX:
        _cache.popitem(last=False)


def target_state(target: ExecutionTarget) -> str:
    """Return a text that every change of a target changes: for what a person confirms."""
    return f"{target.id} {target.version} {target.updated_at.astimezone(UTC).isoformat()}"


def state_of_target(target_id: str) -> str:
    """Return the state of the target with this id; empty if there is none."""
    if is_paired_browser(target_id):
        client = PluginClient.objects.filter(id=target_id, revoked_at__isnull=True).first()
        return "" if client is None else state_of_browser(client)
    target = ExecutionTarget.objects.filter(id=target_id).first()
    return "" if target is None else target_state(target)


def is_unchanged(target: ExecutionTarget) -> Precondition:
    """Return the precondition that a target is enabled and has not changed since it was read."""
    # updated_at as well: a target may be deleted and another one created with its id.
    updated_at = connection.ops.adapt_datetimefield_value(target.updated_at)
    return Precondition(
        "EXISTS (SELECT 1 FROM runners_executiontarget"
        " WHERE id = %s AND version = %s AND updated_at = %s AND enabled)",
        (target.id, target.version, updated_at),
    )
