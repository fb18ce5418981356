"""Rows of browser sessions: their owner, the worker that has them open, their saved state."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from decisions.foundation.errors import SessionNotFound, TrustNotAllowed
from decisions.foundation.infra.ids import new_id
from decisions.foundation.security.sealed_columns import seal_column, unseal_column
from decisions.foundation.validation.storable import storable_text
from decisions.identity.authority import is_operator, owns_session
from decisions.identity.principals import Principal
from runners.models import BrowserSession

NAME_MAX = 128
# Cookies that carry a login, judged by their name, and those whose name only looks so.
_LOGIN = re.compile(r"sess|sid\b|auth|token|jwt|login|logged|remember|identity|account", re.I)
_NO_LOGIN = re.compile(r"csrf|xsrf", re.I)


@dataclass(frozen=True, slots=True)
class SavedState:
    """The decrypted state from which a session is restored: cookies, storage and last URLs.

    Attributes:
        storage: in the form of Playwright's `storage_state`.
        urls: what its tabs showed, the most recently used tab first.
    """

    storage: Mapping[str, Any]
    urls: list[str]
    saved_at: datetime


class StateUnreadable(Exception):
    """No configured key decrypts a saved state."""


def find_session(principal: Principal, session_id: str) -> BrowserSession:
    """Return an open session of this caller.

    Raises:
        SessionNotFound: It is unknown, closed or another principal's; the message does not differ.
        TrustNotAllowed: A caller of the other trust level created it.
    """
    found = BrowserSession.objects.filter(
        id=session_id, workspace_id=principal.workspace_id, closed_at__isnull=True
    ).first()
    if found is None or not owns_session(principal, found):
        raise SessionNotFound(f"There is no open session {session_id[:64]!r}.")
    if found.trust != principal.trust and not is_operator(principal):
        raise TrustNotAllowed(
            f"A caller of trust level {found.trust} created this session; use one of your own.",
            details={"sessionId": found.id, "trustLevel": principal.trust},
        )
    return found


def find_named(principal: Principal, name: str) -> BrowserSession | None:
    """Return the caller's open session of this name, the oldest of several, or None."""
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
    now = datetime.now(UTC)
    return BrowserSession(
        id=new_id("sess_"),
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        principal_id=principal.id,
        trust=principal.trust,
        name=storable_text(name)[:NAME_MAX],
        created_at=now,
        used_at=now,
    )


def read_state(session: BrowserSession) -> SavedState | None:
    """Return the saved state of a session, or None if none was saved.

    Raises:
        StateUnreadable: The key that encrypted it is no longer configured, or it was altered.
    """
    if session.sealed_state is None or session.saved_at is None:
        return None
    try:
        saved = json.loads(unseal_column(session, "sealed_state"))
    except ValueError:
        raise StateUnreadable(session.id) from None
    return SavedState(saved["storage"], saved["urls"], session.saved_at)


def save_state(
    session_id: str, *, worker_id: str, storage: Mapping[str, Any], urls: list[str]
) -> bool:
    """Store the current state of a session, encrypted.

    Returns False if the session was closed or another worker has it open.
    """
    cookies = storage.get("cookies", [])
    saved = json.dumps({"storage": storage, "urls": urls}).encode()
    sealed = seal_column(BrowserSession(id=session_id), "sealed_state", saved)
    rows = BrowserSession.objects.filter(id=session_id, worker_id=worker_id, closed_at__isnull=True)
    now = datetime.now(UTC)
    return bool(
        rows.update(
            sealed_state=sealed,
            cookies=len(cookies),
            logged_in_until=logged_in_until(cookies),
            saved_at=now,
            used_at=now,
        )
    )


def logged_in_until(cookies: Iterable[Mapping[str, Any]]) -> datetime | None:
    """Return when the first of the login cookies expires; None if none has an expiry.

    A login cookie is recognized by its name or by its HttpOnly flag; CSRF cookies do not count.
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
    except (OverflowError, OSError, ValueError):  # beyond the range of datetime: it never expires
        return None


def open_in_worker(worker_id: str, session_ids: Iterable[str]) -> set[str]:
    """Return those of the given sessions that this worker has open."""
    rows = BrowserSession.objects.filter(
        id__in=list(session_ids), worker_id=worker_id, closed_at__isnull=True
    )
    return set(rows.values_list("id", flat=True))


def detach_sessions(worker_id: str) -> None:
    """Clear the worker of all sessions of a lost worker, so that any worker may restore them."""
    BrowserSession.objects.filter(worker_id=worker_id).update(worker_id=None)
