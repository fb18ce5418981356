"""Reading the audit log: a page of it for callers, all of it for export."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import CharField, Func, Q, QuerySet
from django.db.models.functions import Cast

from decisions.audit.bundle import Record, bundle_lines
from decisions.audit.chain import head_of_chain
from decisions.audit.record import AuditEvent, record
from decisions.errors import InvalidInput
from decisions.infra.clock import to_ms
from decisions.models import AuditEntry, AuditSeal, Decision, UserObject

if TYPE_CHECKING:
    from decisions.identity.principals import Principal

BATCH_SIZE = 500
SKEW = timedelta(hours=1)  # how far the clocks of writers may differ


# The tool that a row tells of, spelt as its index has it (migration 0013).
TOOL_IN_SQL = {
    "sqlite": "json_extract(%(expressions)s, '$.tool')",
    "postgresql": "(%(expressions)s ->> 'tool')",
}


class _ToolOf(Func):
    output_field = CharField()

    def as_sql(self, compiler: Any, connection: Any, **more: Any) -> Any:  # type: ignore[override]
        """Return it in the words of the database."""
        spelt = TOOL_IN_SQL[connection.vendor]
        return super().as_sql(compiler, connection, template=spelt, **more)


def filter_by_tool(rows: QuerySet[AuditEntry], tool: str) -> QuerySet[AuditEntry]:
    """Keep the rows that tell of a tool: its calls, in runs and direct ones, and what was refused
    of it.
    """
    return rows.alias(tool_told=_ToolOf("metadata")).filter(tool_told=tool)


def list_audit_entries(
    *,
    principal: Principal,
    since_ms: int | None = None,
    before_ms: int | None = None,
    limit: int = 100,
    cursor: str | None = None,
    **equal: str,
) -> dict[str, Any]:
    """Return {items, nextCursor}: the workspace's rows, newest first; the next page is asked for by
    `cursor`. Nothing is counted, and a page far back costs what the first one does.

    A credential that names users gets what it did itself, and what is about these users.

    Args:
        since_ms: Unix milliseconds of the first moment that is wanted.
        before_ms: Of the first one after it that is not.
        equal: columns and what they have to be; another's tenant or workspace reads as empty.

    Raises:
        InvalidInput: The span ends before it begins.
    """
    principal.require("audit:read")
    if since_ms is not None and before_ms is not None and since_ms > before_ms:
        raise InvalidInput("from: it lies after `to`.")
    rows = AuditEntry.objects.filter(
        tenant_id=principal.tenant_id, workspace_id=principal.workspace_id
    )
    rows = rows.filter(**equal) & filter_by_time(rows, _moment(since_ms), _moment(before_ms))
    if cursor is not None:
        rows = rows.filter(id__lt=int(cursor))
    if principal.acts_for is not None:
        rows = rows.filter(_of_its_users(principal, principal.acts_for))
    found = list(rows.order_by("-id")[: limit + 1])
    more = len(found) > limit
    shown = found[:limit]
    return {
        "items": [_item(entry) for entry in shown],
        "nextCursor": str(shown[-1].id) if more else None,
    }


def _of_its_users(principal: Principal, users: frozenset[str]) -> Q:
    """Return the condition of rows that a credential which names users may read: its own deeds, the
    runs that it submitted, and these users' decisions and objects.
    """
    mine, theirs = {"workspace_id": principal.workspace_id}, Q(user_id__in=users)
    runs = AuditEntry.objects.filter(**mine, actor=principal.id, action="run.submitted")
    decisions = Decision.objects.filter(theirs | Q(principal_id=principal.id), **mine)
    about: dict[str, Any] = {
        "run": runs.values("resource_id"),
        "decision": decisions.values(number=Cast("pk", CharField())),
        "userobject": UserObject.objects.filter(theirs, **mine).values("id"),
        "user": users,
    }
    allowed = Q(actor=principal.id)
    for kind, ids in about.items():
        allowed |= Q(resource_type=kind, resource_id__in=ids)
    return allowed


def filter_by_time(
    rows: QuerySet[AuditEntry], since: datetime | None, before: datetime | None
) -> QuerySet[AuditEntry]:
    """Keep the rows of a span of time.

    Rows are read in the order of their ids, so the span is made one of ids too, by one look each at
    the index of times, an hour wider for the sake of clocks that differ.
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


def _moment(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)


def _item(entry: AuditEntry) -> dict[str, Any]:
    return {**_told(entry), "createdAt": to_ms(entry.created_at)}


def _told(entry: AuditEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "tenantId": entry.tenant_id,
        "workspaceId": entry.workspace_id,
        "action": entry.action,
        "actor": entry.actor,
        "resourceType": entry.resource_type,
        "resourceId": entry.resource_id,
        "metadata": entry.metadata,
    }


def audit_records(rows: QuerySet[AuditEntry]) -> Iterator[Record]:
    """Yield these rows, oldest first, each with its MAC and its place in the chain; null where it
    is not sealed yet.
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
    place = None
    if seal is not None:
        place = {"position": seal.position, "prev": seal.prev, "hash": seal.hash}
    at = entry.created_at.astimezone(UTC).isoformat(timespec="microseconds")
    return {"type": "audit", **_told(entry), "createdAt": at, "mac": entry.mac, "seal": place}


def bundle_head(kind: str, *, made_by: str, **told: Any) -> Record:
    """Return the first line of a bundle: what it is, of when, and where the chain ended then."""
    head = head_of_chain()
    return {
        "bundle": kind,
        "madeAt": datetime.now(UTC).isoformat(timespec="seconds"),
        "madeBy": made_by,
        "chainHead": {"position": head.position, "hash": head.hash},
        **told,
    }


def export_audit(
    rows: QuerySet[AuditEntry], *, actor: str, place: tuple[str, str], asked: dict[str, Any]
) -> Iterator[bytes]:
    """Return the lines of a bundle of these rows, with the chain. That it was made is audited, and
    committed before the first line.

    Args:
        place: the tenant and workspace whose log tells it.
        asked: which rows these are, in words of the caller's.
    """
    record(AuditEvent("audit.exported", actor, "audit", "log", *place, {"filters": asked}))
    return bundle_lines(bundle_head("audit", made_by=actor, filters=asked), audit_records(rows))
