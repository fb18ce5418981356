"""Lists of runs for API callers: filtered, sorted, and paged by a cursor that does not shift."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from django.conf import settings
from django.db.models import Q, QuerySet

from artifacts.selectors import artifact_ids_of
from decisions.foundation.errors import InvalidInput
from decisions.identity.authority import seen_by, sees_whole_workspace
from decisions.identity.principals import Principal
from runs.models import HOST_ACTION, SUBMITTED, Run
from runs.queries.run_search import RunFilters
from runs.queries.runs import run_object, take_within_bytes
from runs.queries.totals import count_visible
from runs.search.labels import parse_labels
from runs.task_templates.page_texts import shown_result
from runs.task_templates.registry import get_template

LISTED_RESULT_BYTES = 2048  # of a result in a list of runs
COUNTED_MAX = 10_000  # runs that are counted with other filters than status and template
NEWEST = "-createdAt"
# The column of each order; the id decides between equal values.
_COLUMNS = {"createdAt": "created_at", "elapsedMs": "active_ms"}
SORTS = (NEWEST, "createdAt", "-elapsedMs", "elapsedMs")
# Arguments of calls that have another name here.
_ARGUMENTS = {
    "templateId": "template_id",
    "q": "query",
    "label": "labels",
    "errorCode": "error_code",
    "userId": "user_id",
    "submittedBy": "principal_id",
    "minElapsedMs": "min_elapsed_ms",
    "maxElapsedMs": "max_elapsed_ms",
    "hostActions": "host_actions",
}
_UNREAD = ("inputs", "options")  # columns that no answer contains


@dataclass(frozen=True, slots=True)
class _Order:
    """The order of a list, by its name in the API."""

    name: str

    @property
    def column(self) -> str:
        return _COLUMNS[self.name.removeprefix("-")]

    @property
    def fields(self) -> tuple[str, str]:
        sign = "-" if self.name.startswith("-") else ""
        return f"{sign}{self.column}", f"{sign}id"

    def after(self, run: Run) -> str:
        """Return the cursor of the page that begins after a run."""
        value = getattr(run, self.column)
        key = _microseconds(value) if isinstance(value, datetime) else value
        return base64.urlsafe_b64encode(orjson.dumps([self.name, key, run.id])).decode().rstrip("=")

    def continued(self, rows: QuerySet[Run], cursor: str) -> QuerySet[Run]:
        """Return the rows after a cursor.

        Raises:
            InvalidInput: It is no cursor of this list.
        """
        key, run_id = self._read(cursor)
        value = key if self.column == "active_ms" else _EPOCH + timedelta(microseconds=key)
        than = "lt" if self.name.startswith("-") else "gt"
        # The first condition is one range of the index; the second is about equal values.
        rows = rows.filter(**{f"{self.column}__{than}e": value})
        return rows.filter(
            Q(**{f"{self.column}__{than}": value}) | Q(**{f"id__{than}": run_id}),
        )

    def _read(self, cursor: str) -> tuple[int, str]:
        try:
            padded = cursor + "=" * (-len(cursor) % 4)
            read = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        except (binascii.Error, ValueError):
            read = None
        match read:
            case [self.name, int(key), str(run_id)] if 0 <= key < 2**53 and "\0" not in run_id:
                return key, run_id
            case [str(name), int(), str()] if name in SORTS:
                raise InvalidInput(f"cursor: it belongs to sort={name}; send both together.")
        raise InvalidInput("cursor: it is no nextCursor of this list.")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _microseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


def list_runs_of_call(
    *, principal: Principal, call: Mapping[str, Any], max_bytes: int | None = None
) -> dict[str, Any]:
    """Return `list_runs` for the arguments of a call over REST or MCP.

    Raises:
        InvalidInput: As `list_runs`; a label is malformed; `since` is after `until`.
    """
    arguments = {_ARGUMENTS.get(name, name): value for name, value in call.items()}
    since, until = arguments.get("since"), arguments.get("until")
    if since is not None and until is not None and since > until:
        raise InvalidInput("since: it is after `until`.")
    for name, ms in (("since", since), ("until", until)):
        arguments[name] = None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)
    if (caller := arguments.get("principal_id", "")).startswith("tok_"):
        arguments["principal_id"] = f"token:{caller}"
    if "labels" in arguments:
        arguments["labels"] = parse_labels(arguments["labels"])
    return list_runs(principal=principal, max_bytes=max_bytes, **arguments)


def list_runs(
    *,
    principal: Principal,
    limit: int = 50,
    offset: int = 0,
    cursor: str | None = None,
    sort: str = NEWEST,
    max_bytes: int | None = None,
    host_actions: bool = False,
    **filters: Any,
) -> dict[str, Any]:
    """Return {runs, total, hasMore, nextCursor} of the runs that the caller sees; total counts all
    that match (S0 §4.3): up to COUNTED_MAX with other filters than status and template, or for a
    caller who does not see the whole workspace.

    nextCursor names the last run of the page, so runs that are submitted meanwhile shift no page.
    Results over LISTED_RESULT_BYTES are shortened. With `max_bytes` the page ends before the run
    that would exceed it, but has at least one run.

    Args:
        host_actions: with the browser actions of agent hosts, which are left out unless the filters
            name them.
        filters: the fields of `RunFilters`.

    Raises:
        InvalidInput: The cursor is malformed or of another order, or sent with an offset.
    """
    principal.require("runs:read")
    if cursor is not None and offset:
        raise InvalidInput("offset: it cannot be combined with a cursor.")
    chosen, order = RunFilters(**filters), _Order(sort)
    hides_actions = not (host_actions or chosen.names_host_actions)
    rows, total = _visible(principal, chosen, hides_actions=hides_actions)
    rows = rows.order_by(*order.fields)
    if cursor is not None:
        rows = order.continued(rows, cursor)
    if _has_total(principal, chosen) and cursor is None and sort == NEWEST:
        page = _page(rows, offset, min(limit + 1, total - offset), total)
    else:
        page = list(rows.defer(*_UNREAD)[offset : offset + limit + 1])
    artifact_ids = artifact_ids_of(run.id for run in page[:limit])
    entries = (_list_entry(run, artifact_ids.get(run.id, [])) for run in page[:limit])
    runs = take_within_bytes(entries, max_bytes)
    has_more = len(runs) < len(page)
    return {
        "runs": runs,
        "total": total,
        "hasMore": has_more,
        "nextCursor": order.after(page[len(runs) - 1]) if has_more else None,
    }


def _has_total(principal: Principal, chosen: RunFilters) -> bool:
    return chosen.has_total and sees_whole_workspace(principal)


def _visible(
    principal: Principal, chosen: RunFilters, *, hides_actions: bool
) -> tuple[QuerySet[Run], int]:
    """Return the visible runs that match, and their number."""
    ttl_limit = datetime.now(UTC) - timedelta(milliseconds=settings.RUN_TTL_MS)
    rows = Run.objects.filter(seen_by(principal), hidden_at__isnull=True)
    rows = chosen.apply(rows, principal.workspace_id)
    within_ttl = Q(ended_at__isnull=True) | Q(ended_at__gt=ttl_limit)
    if not _has_total(principal, chosen):
        rows = rows.filter(within_ttl)
        rows = rows.filter(SUBMITTED) if hides_actions else rows
        return rows, rows.order_by()[:COUNTED_MAX].count()
    counted = count_visible(
        principal.workspace_id,
        status=chosen.status,
        template_id=chosen.template_id,
        without=HOST_ACTION if hides_actions else "",
        ended_before=ttl_limit,
    )
    # Conditions that all runs meet would only keep a page from being skipped in the index alone.
    rows = rows.filter(SUBMITTED) if counted.left_out else rows
    rows = rows.filter(within_ttl) if counted.past_ttl else rows
    return rows, counted.visible - counted.past_ttl


def _list_entry(run: Run, artifact_ids: Sequence[str]) -> dict[str, Any]:
    """Return the Run object for a list: with a shortened result."""
    data = run_object(run, list(artifact_ids))
    if run.result is not None and artifact_ids:
        template = get_template(run.template_id)
        schema: Mapping[str, Any] | None = template.result_schema if template else None
        data["result"], _ = shown_result(
            run.result, LISTED_RESULT_BYTES, LISTED_RESULT_BYTES, artifact_ids[0], schema
        )
    return data


def _page(rows: QuerySet[Run], offset: int, size: int, total: int) -> list[Run]:
    """Return `size` runs from `offset` on, newest first.

    The offset is skipped in the index alone, from the nearer end of the list.
    """
    if size <= 0:
        return []
    offset_from_end = total - offset - size
    if offset <= offset_from_end:
        ids = rows.order_by("-created_at", "-id").values("id")[offset : offset + size]
    else:
        end = offset_from_end + size
        ids = rows.order_by("created_at", "id").values("id")[offset_from_end:end]
    return list(Run.objects.filter(id__in=ids).order_by("-created_at", "-id").defer(*_UNREAD))
