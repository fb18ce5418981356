"""Browser sessions as rows: whose they are, which worker has them open, their state at rest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from decisions.errors import SessionNotFound, TrustNotAllowed
from decisions.identity.principals import Principal
from decisions.infra.ids import new_id
from decisions.security.keys import seal, unseal
from decisions.validation.storable import storable_text
from runners.models import BrowserSession

NAME_MAX = 128
_OPERATOR = "admin:"  # a person at the admin site acts for every principal of the workspace
# Cookies that carry a login by their name, and those that only look so.
_LOGIN = re.compile(r"sess|sid\b|auth|token|jwt|login|logged|remember|identity|account", re.I)
_NO_LOGIN = re.compile(r"csrf|xsrf", re.I)


@dataclass(frozen=True, slots=True)
class SavedState:
    """What a session is restored from: cookies, storage and last addresses, in the clear.

    Attributes:
        storage: as Playwright's `storage_state` has it.
        urls: what its tabs showed, the one used last first.
    """

    storage: Mapping[str, Any]
    urls: list[str]
    saved_at: datetime


class StateUnreadable(Exception):
    """A saved state that no configured key opens."""


def find_session(principal: Principal, session_id: str) -> BrowserSession:
    """Return an open session of this caller.

    Raises:
        SessionNotFound: Unknown, closed or another's: all read the same.
        TrustNotAllowed: It was made by a caller of the other trust level.
    """
    found = BrowserSession.objects.filter(
        id=session_id, workspace_id=principal.workspace_id, closed_at__isnull=True
    ).first()
    if found is None or not is_owned_by(principal, found):
        raise SessionNotFound(f"There is no open session {session_id[:64]!r}.")
    if found.trust != principal.trust and not principal.id.startswith(_OPERATOR):
        raise TrustNotAllowed(
            f"This session was made by a caller of trust level {found.trust}.",
            details={"sessionId": found.id, "trustLevel": principal.trust},
        )
    return found


def is_owned_by(principal: Principal, session: BrowserSession) -> bool:
    """Tell whether a session of the caller's workspace is the caller's own, or the caller is an
    operator.
    """
    return session.principal_id == principal.id or principal.id.startswith(_OPERATOR)


def find_named(principal: Principal, name: str) -> BrowserSession | None:
    """Return the caller's open session of this name, of several the first; None: there is none."""
    mine = BrowserSession.objects.filter(
        workspace_id=principal.workspace_id,
        principal_id=principal.id,
        trust=principal.trust,
        name=name,
        closed_at__isnull=True,
    )
    return mine.order_by("created_at", "id").first()


def new_session(principal: Principal, name: str) -> BrowserSession:
    """Return the unsaved row of a new session."""
    return BrowserSession(
        id=new_id("sess_"),
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        principal_id=principal.id,
        trust=principal.trust,
        name=storable_text(name)[:NAME_MAX],
        used_at=datetime.now(UTC),
    )


def read_state(session: BrowserSession) -> SavedState | None:
    """Return what a session was saved as, or None where nothing was.

    Raises:
        StateUnreadable: The key that sealed it is not configured any more, or it was altered.
    """
    if session.sealed_state is None or session.saved_at is None:
        return None
    try:
        kept = json.loads(unseal(bytes(session.sealed_state)))
    except ValueError:
        raise StateUnreadable(session.id) from None
    return SavedState(kept["storage"], kept["urls"], session.saved_at)


def save_state(
    session_id: str, *, worker_id: str, storage: Mapping[str, Any], urls: list[str]
) -> bool:
    """Keep, sealed, what a session is now; False: it was closed, or is another worker's."""
    cookies = storage.get("cookies", [])
    ours = BrowserSession.objects.filter(id=session_id, worker_id=worker_id, closed_at__isnull=True)
    now = datetime.now(UTC)
    return bool(
        ours.update(
            sealed_state=seal(json.dumps({"storage": storage, "urls": urls}).encode()),
            cookies=len(cookies),
            logged_in_until=logged_in_until(cookies),
            saved_at=now,
            used_at=now,
        )
    )


def logged_in_until(cookies: Iterable[Mapping[str, Any]]) -> datetime | None:
    """Return when the first of the cookies that look like a login ends; None where none says so.

    A cookie looks like one by its name, or because scripts may not read it; those against forged
    requests do not count.
    """
    ends = [
        float(cookie["expires"])
        for cookie in cookies
        if float(cookie.get("expires", -1)) > 0
        and (_LOGIN.search(cookie["name"]) or cookie.get("httpOnly"))
        and not _NO_LOGIN.search(cookie["name"])
    ]
    try:
        return datetime.fromtimestamp(min(ends), UTC) if ends else None
    except (OverflowError, OSError, ValueError):  # beyond the calendar: for ever
        return None


def open_in_worker(worker_id: str, session_ids: Iterable[str]) -> set[str]:
    """Return those of these sessions that are open and this worker's."""
    rows = BrowserSession.objects.filter(
        id__in=list(session_ids), worker_id=worker_id, closed_at__isnull=True
    )
    return set(rows.values_list("id", flat=True))


def detach_sessions(worker_id: str) -> None:
    """Leave the sessions of a worker that is gone to whoever restores them."""
    BrowserSession.objects.filter(worker_id=worker_id).update(worker_id=None)
