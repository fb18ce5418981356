"""Queries of the audit log: pages for API callers, bundles for export."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import CharField, Func, Q, QuerySet
from django.db.models.functions import Cast

from decisions.audit.bundle import Record, bundle_lines
from decisions.audit.chain import audit_record, head_of_chain
from decisions.audit.record import AuditEvent, record
from decisions.audit.stored import fields_of
from decisions.foundation.errors import InvalidInput
from decisions.foundation.infra.clock import to_ms
from decisions.models import AuditEntry, AuditSeal, Decision, UserObject

if TYPE_CHECKING:
    from decisions.identity.principals import Principal

BATCH_SIZE = 500
SKEW = timedelta(hours=1)  # the maximum clock skew between writers


# The expression for a row's tool; it must match the index of migration 0013.
TOOL_IN_SQL = {
    "sqlite": "json_extract(%(expressions)s, '$.tool')",
    "postgresql": "(%(expressions)s ->> 'tool')",
}


class _ToolOf(Func):
    output_field = CharField()

    def as_sql(self, compiler: Any, connection: Any, **more: Any) -> Any:  # type: ignore[override]
        """Return the expression in the dialect of the database."""
        template = TOOL_IN_SQL[connection.vendor]
        return super().as_sql(compiler, connection, template=template, **more)


def filter_by_tool(rows: QuerySet[AuditEntry], tool: str) -> QuerySet[AuditEntry]:
    """Filter by tool: rows about its calls, in runs and direct, allowed and refused."""
    return rows.alias(tool_name=_ToolOf("metadata")).filter(tool_name=tool)


def list_audit_entries(
    *,
    principal: Principal,
    since_ms: int | None = None,
    before_ms: int | None = None,
    limit: int = 100,
    cursor: str | None = None,
    **equal: str,
) -> dict[str, Any]:
    """Return one page of the workspace's rows, newest first: {items, nextCursor}.

    Keyset pagination: a late page costs the same as the first, and there is no total. A credential
    restricted to users gets only its own actions and rows about these users.

    Args:
        since_ms: Unix milliseconds, inclusive.
        before_ms: Unix milliseconds, exclusive.
        cursor: nextCursor of the page before.
        equal: column -> required value; another tenant or workspace gives an empty page.

    Raises:
        InvalidInput: `since_ms` is after `before_ms`.
    """
    principal.require("audit:read")
    if since_ms is not None and before_ms is not None and since_ms > before_ms:
        raise InvalidInput("from: it is after `to`.")
    rows = AuditEntry.objects.filter(
        tenant_id=principal.tenant_id, workspace_id=principal.workspace_id
    )
    rows = rows.filter(**equal) & filter_by_time(rows, _from_ms(since_ms), _from_ms(before_ms))
    if cursor is not None:
        rows = rows.filter(id__lt=int(cursor))
    rows = limited_to_users(rows, principal)
    found = list(rows.order_by("-id")[: limit + 1])
    page, has_more = found[:limit], len(found) > limit
    return {
        "items": [_item(entry) for entry in page],
        "nextCursor": str(page[-1].id) if has_more else None,
    }


def limited_to_users(rows: QuerySet[AuditEntry], principal: Principal) -> QuerySet[AuditEntry]:
    """Return the rows that a caller may read: if its credential is restricted to users, its own
    actions, the runs that it submitted, and these users' decisions and objects; else all.
    """
    users = principal.acts_for
    if users is None:
        return rows
    own, theirs = {"workspace_id": principal.workspace_id}, Q(user_id__in=users)
    runs = AuditEntry.objects.filter(**own, actor=principal.id, action="run.submitted")
    decisions = Decision.objects.filter(theirs | Q(principal_id=principal.id), **own)
    about: dict[str, Any] = {
        "run": runs.values("resource_id"),
        "decision": decisions.values(number=Cast("pk", CharField())),
        "userobject": UserObject.objects.filter(theirs, **own).values("id"),
        "user": users,
    }
    allowed = Q(actor=principal.id)
    for kind, ids in about.items():
        allowed |= Q(resource_type=kind, resource_id__in=ids)
    return rows.filter(allowed)


def filter_by_time(
    rows: QuerySet[AuditEntry], since: datetime | None, before: datetime | None
) -> QuerySet[AuditEntry]:
    """Filter by time of creation.

    Pages are ordered by id, so the filter is narrowed to a range of ids as well, found by one index
    lookup on the time for each end, an hour wider because of clock skew.
    """
    ids = AuditEntry.objects.values_list("id", flat=True)
    if since is not None:
        first = ids.filter(created_at__gte=since - SKEW).order_by("created_at").first()
        span = Q(created_at__gte=since, id__gte=first)
        rows = rows.filter(span) if first is not None else rows.none()
    if before is not None:
        last = ids.filter(created_at__lt=before + SKEW).order_by("-created_at").first()
        span = Q(created_at__lt=before, id__lte=last)
        rows = rows.filter(span) if last is not None else rows.none()
    return rows


def _from_ms(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)


def _item(entry: AuditEntry) -> dict[str, Any]:
    at = entry.created_at
    return {**fields_of(entry, entry.metadata), "createdAt": None if at is None else to_ms(at)}


def audit_records(rows: QuerySet[AuditEntry]) -> Iterator[Record]:
    """Yield these rows as bundle records, oldest first, each with its MAC and its seal; null where
    it is not sealed yet.
    """
    after: int | None = None
    while True:
        part = rows if after is None else rows.filter(id__gt=after)
        found = list(part.order_by("id")[:BATCH_SIZE])
        ids = [entry.id for entry in found]
        seals = {seal.entry_id: seal for seal in AuditSeal.objects.filter(entry_id__in=ids)}
        for entry in found:
            yield _record(entry, seals.get(entry.id))
        if len(found) < BATCH_SIZE:
            return
        after = found[-1].id


def _record(entry: AuditEntry, seal: AuditSeal | None) -> Record:
    at = entry.created_at and entry.created_at.astimezone(UTC).isoformat(timespec="microseconds")
    return audit_record(fields_of(entry, entry.metadata), at, entry.mac, seal)


def bundle_head(kind: str, *, made_by: str, **fields: Any) -> Record:
    """Return the first line of a bundle: kind, time, author, and the current head of the chain."""
    head = head_of_chain()
    return {
        "bundle": kind,
        "madeAt": datetime.now(UTC).isoformat(timespec="seconds"),
        "madeBy": made_by,
        "chainHead": {"position": head.position, "hash": head.hash},
        **fields,
    }


def export_audit(
    rows: QuerySet[AuditEntry], *, actor: str, owner: tuple[str, str], filters: dict[str, Any]
) -> Iterator[bytes]:
    """Return the lines of a bundle of these rows. The export is audited before the first line.

    Args:
        owner: the tenant id and workspace id of the audit row about the export.
        filters: how the rows were selected, for the bundle's head and the audit row.
    """
    record(AuditEvent("audit.exported", actor, "audit", "log", *owner, {"filters": filters}))
    return bundle_lines(bundle_head("audit", made_by=actor, filters=filters), audit_records(rows))
