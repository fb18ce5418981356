"""Targets as this process read them last, for callers whose calls go there again. Whoever begins a
call by one has the statement that begins it test that the target still is so.
"""

from __future__ import annotations

from collections import OrderedDict

from decisions.infra.preconditions import Precondition
from runners.models import ExecutionTarget
from runners.targets.targets import Caller

_KNOWN_MAX = 128
_known: OrderedDict[tuple[Caller, str], ExecutionTarget] = OrderedDict()


def target_by_heart(caller: Caller, target_id: str) -> ExecutionTarget | None:
    """Return the target that this caller's calls went to before by this id, without a query; None
    where none did. Safe from any thread.
    """
    return _known.get((caller, target_id))


def keep_by_heart(caller: Caller, target: ExecutionTarget) -> None:
    """Keep a target that was read for a caller's call, for the next one."""
    _known[caller, target.id] = target
    while len(_known) > _KNOWN_MAX:
        _known.popitem(last=False)


def is_unchanged(target: ExecutionTarget) -> Precondition:
    """That a target is what it was when it was read, and enabled."""
    # The time too: a target may be deleted and another made under its id.
    return Precondition(
        "EXISTS (SELECT 1 FROM runners_executiontarget"
        " WHERE id = %s AND version = %s AND updated_at = %s AND enabled)",
        (target.id, target.version, target.updated_at),
    )
