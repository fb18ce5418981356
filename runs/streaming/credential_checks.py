"""Check whether the credentials of open streams and WebSockets are still valid: one query every
CHECK_S for all connections of a credential, because an event may go to a thousand of them at once.
"""

from __future__ import annotations

import asyncio
import time
from weakref import WeakKeyDictionary

from decisions.foundation.infra.threads import in_thread
from decisions.identity.principals import Principal, is_credential_active

CHECK_S = 10.0  # how old a check may be
# By credential, and the users that it acted for when its connection opened: when, and the result.
_Checks = dict[tuple[str, str, frozenset[str] | None], tuple[float, asyncio.Task[bool]]]
_checks: WeakKeyDictionary[asyncio.AbstractEventLoop, _Checks] = WeakKeyDictionary()


async def is_still_active(principal: Principal) -> bool:
    """Return whether the caller's token was valid, for the same users, at most CHECK_S ago.

    Raises:
        Error: The database is unavailable.
    """
    checks = _checks.setdefault(asyncio.get_running_loop(), {})
    key, now = (principal.id, principal.permission, principal.acts_for), time.monotonic()
    checked_at, check = checks.get(key, (0.0, None))
    has_failed = check is not None and check.done() and check.exception() is not None
    if check is None or has_failed or now - checked_at >= CHECK_S:
        _forget_old(checks, now)
        check = asyncio.create_task(in_thread(is_credential_active, principal))
        checks[key] = now, check
    # A reader that leaves must not cancel the check for the others.
    return await asyncio.shield(check)


def _forget_old(checks: _Checks, now: float) -> None:
    """Forget the checks of credentials that may have no connection any more."""
    for key in [key for key, (at, _) in checks.items() if now - at >= CHECK_S]:
        del checks[key]
