"""Operations on named browser sessions, for REST, MCP and the admin; and their expiry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import admit_call, tool_call_request, use_approval
from decisions.foundation.errors import Conflict, InvalidInput, NoSuchSession, SessionNotFound
from decisions.foundation.infra.batches import BATCH_SIZE
from decisions.foundation.infra.clock import to_ms
from decisions.foundation.infra.ids import new_id
from decisions.foundation.security.sealed_columns import seal_column, unseal_column
from decisions.foundation.validation.json_schema import page_of
from decisions.identity.principals import Principal
from runners.browser_sessions import NAME_MAX, find_session, new_session
from runners.models import BrowserSession
from runs.models import ACTIVE, Run, Worker
from runs.queue.session_lease import lock_session, run_using, runs_using

DEFAULT_NAME = "session"
EXPIRED_AT_ONCE = 200  # sessions per call of `expire_sessions`


def list_sessions(*, principal: Principal, limit: int = 50, offset: int = 0) -> dict[str, Any]:
    """Return {sessions, total, hasMore, nextCursor}: the caller's open sessions, newest first."""
    principal.require("sessions:read")
    rows = BrowserSession.objects.filter(
        workspace_id=principal.workspace_id, principal_id=principal.id, closed_at__isnull=True
    )
    total = rows.count()
    page = list(rows.order_by("-created_at", "-id").defer("sealed_state")[offset : offset + limit])
    users = runs_using([row.id for row in page])
    alive = _alive({row.worker_id for row in page if row.worker_id})
    listed = [_session_object(row, users.get(row.id), row.worker_id in alive) for row in page]
    return page_of("sessions", listed, total=total, offset=offset)


def get_session(*, principal: Principal, session_id: str) -> dict[str, Any]:
    """Return one session of the caller.

    Raises:
        NoSuchSession: Unknown, closed, or another's.
    """
    principal.require("sessions:read")
    return session_object(_get_own(principal, session_id))


def session_object(row: BrowserSession) -> dict[str, Any]:
    """Return a session as the API shows it, without its saved state."""
    alive = _alive({row.worker_id} if row.worker_id else set())
    return _session_object(row, run_using(row.id), row.worker_id in alive)


def create_session(*, principal: Principal, name: str | None = None) -> dict[str, Any]:
    """Create an empty session. The first run that names it opens it.

    Raises:
        InvalidInput: The name is blank.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    principal.require("sessions:write")
    row = new_session(principal, _name(name) if name is not None else DEFAULT_NAME)
    approval = admit_call(tool_call_request(principal, "create_session", {"name": row.name}))
    with transaction.atomic():
        use_approval(approval)
        insert_session(row, actor=principal.id)
    return session_object(row)


def insert_session(row: BrowserSession, *, actor: str, **about: Any) -> None:
    """Insert a session's row and its audit event. Runs in the caller's transaction."""
    row.save(force_insert=True)
    record(created_event(row, actor=actor, **about))


def created_event(row: BrowserSession, *, actor: str, **about: Any) -> AuditEvent:
    """Return the audit event of a new session."""
    return _audit_event("session.created", actor, row, {"name": row.name, **about})


def rename_session(*, principal: Principal, session_id: str, name: str) -> dict[str, Any]:
    """Rename a session.

    Raises:
        NoSuchSession: As `get_session`.
        InvalidInput: The name is blank.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    principal.require("sessions:write")
    row = _get_own(principal, session_id)
    new_name = _name(name)
    arguments = {"sessionId": row.id, "name": new_name}
    approval = admit_call(tool_call_request(principal, "rename_session", arguments))
    with transaction.atomic():
        use_approval(approval)
        renamed = BrowserSession.objects.filter(id=row.id, closed_at__isnull=True)
        if not renamed.update(name=new_name):
            raise _missing(session_id)
        change = {"name": new_name, "before": row.name}
        record(_audit_event("session.renamed", principal.id, row, change))
    row.name = new_name
    return session_object(row)


def close_session(*, principal: Principal, session_id: str) -> dict[str, Any]:
    """Close a session for good: its state is deleted at once, its pages close within a second.

    Queued runs that name it fail with SESSION_NOT_FOUND when a worker claims them.

    Raises:
        NoSuchSession: As `get_session`.
        Conflict: A run uses it; details.runId names it.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    principal.require("sessions:write")
    row = _get_own(principal, session_id)
    approval = admit_call(tool_call_request(principal, "close_session", {"sessionId": row.id}))
    with transaction.atomic():
        use_approval(approval)
        locked = lock_session(row.id)
        if locked is None:
            raise _missing(session_id)
        user = run_using(row.id)
        if user is not None:
            raise Conflict(
                f"The run {user} uses this session; cancel it, or wait until it ends.",
                details={"runId": user},
            )
        _close(locked, "session.closed", principal.id)
    return {"success": True, "sessionId": row.id}


def clone_session(
    *, principal: Principal, session_id: str, name: str | None = None
) -> dict[str, Any]:
    """Create a new, independent session from the last saved state of another.

    Raises:
        NoSuchSession: As `get_session`.
        SessionNotFound: The saved state is unreadable.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    principal.require("sessions:write")
    row = _get_own(principal, session_id)
    clone = BrowserSession(
        id=new_id("sess_"),
        tenant_id=row.tenant_id,
        workspace_id=row.workspace_id,
        principal_id=row.principal_id,
        trust=row.trust,
        name=_name(name) if name is not None else f"copy of {row.name}"[:NAME_MAX],
        cookies=row.cookies,
        saved_at=row.saved_at,
        logged_in_until=row.logged_in_until,
        used_at=datetime.now(UTC),
    )
    clone.sealed_state = _state_for(clone, row)
    arguments = {"sessionId": row.id, "name": clone.name}
    approval = admit_call(tool_call_request(principal, "clone_session", arguments))
    with transaction.atomic():
        use_approval(approval)
        if lock_session(row.id) is None:
            raise _missing(session_id)
        insert_session(clone, actor=principal.id, clonedFrom=row.id)
    return session_object(clone)


def _state_for(clone: BrowserSession, row: BrowserSession) -> bytes | None:
    """Return the saved state of a session, encrypted for its clone."""
    if row.sealed_state is None:
        return None
    try:
        return seal_column(clone, "sealed_state", unseal_column(row, "sealed_state"))
    except ValueError:
        raise SessionNotFound(
            f"The saved state of the session {row.id} cannot be read with the configured keys."
        ) from None


def expire_sessions() -> int:
    """Close the sessions that were not used for SESSION_IDLE_TTL_MS and that no active run names;
    return how many.
    """
    closed = 0
    due = BrowserSession.objects.filter(closed_at__isnull=True, used_at__lte=_idle_since())
    for session_id in due.order_by("used_at").values_list("id", flat=True)[:EXPIRED_AT_ONCE]:
        with transaction.atomic():
            row = lock_session(session_id)
            active = Run.objects.filter(session_id=session_id, status__in=ACTIVE)
            if row is not None and row.used_at <= _idle_since() and not active.exists():
                _close(row, "session.expired", "scheduler")
                closed += 1
    return closed


def delete_closed_sessions() -> int:
    """Delete the rows of sessions that were closed RUN_RETENTION_DAYS ago; return how many."""
    oldest = datetime.now(UTC) - timedelta(days=settings.RUN_RETENTION_DAYS)
    old = BrowserSession.objects.filter(closed_at__lte=oldest).values_list("id", flat=True)
    deleted, _ = BrowserSession.objects.filter(id__in=list(old[:BATCH_SIZE])).delete()
    return deleted


def _close(row: BrowserSession, action: str, actor: str) -> None:
    BrowserSession.objects.filter(id=row.id).update(
        closed_at=datetime.now(UTC),
        worker_id=None,
        sealed_state=None,
        cookies=0,
        logged_in_until=None,
    )
    record(_audit_event(action, actor, row, {"name": row.name}))


def _get_own(principal: Principal, session_id: str) -> BrowserSession:
    try:
        return find_session(principal, session_id)
    except SessionNotFound:
        raise _missing(session_id) from None


def _missing(session_id: str) -> NoSuchSession:
    return NoSuchSession(f"There is no open session {session_id[:64]!r}.")


def _name(name: str) -> str:
    stripped = name.strip()
    if not stripped:
        raise InvalidInput("name: must not be blank.")
    return stripped


def _idle_since() -> datetime:
    return datetime.now(UTC) - timedelta(milliseconds=settings.SESSION_IDLE_TTL_MS)


def _alive(worker_ids: set[str]) -> set[str | None]:
    if not worker_ids:
        return set()
    rows = Worker.objects.filter(id__in=worker_ids, lost_at__isnull=True)
    return set(rows.values_list("id", flat=True))


def _session_object(row: BrowserSession, user: str | None, is_live: bool) -> dict[str, Any]:
    until = row.used_at + timedelta(milliseconds=settings.SESSION_IDLE_TTL_MS)
    return {
        "sessionId": row.id,
        "name": row.name,
        "live": is_live,
        "usedByRunId": user,
        "cookies": row.cookies,
        "loggedInUntil": to_ms(row.logged_in_until),
        "createdAt": to_ms(row.created_at),
        "usedAt": to_ms(row.used_at),
        "savedAt": to_ms(row.saved_at),
        "expiresAt": to_ms(until),
        "trustLevel": row.trust,
    }


def _audit_event(
    action: str, actor: str, row: BrowserSession, details: dict[str, Any]
) -> AuditEvent:
    return AuditEvent(action, actor, "session", row.id, row.tenant_id, row.workspace_id, details)
