"""Runs as a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from django.db.models import QuerySet
from django.http import StreamingHttpResponse

from runs.models import Run

EXPORT_MAX = 10_000  # rows of a file
_CHUNK = 500
_COLUMNS = (
    "runId",
    "status",
    "templateId",
    "subject",
    "labels",
    "errorCode",
    "causeCode",
    "failedOn",
    "resultSummary",
    "doneSteps",
    "totalSteps",
    "elapsedMs",
    "createdAt",
    "startedAt",
    "endedAt",
    "submittedBy",
    "userId",
    "workspaceId",
    "taskId",
    "retryOf",
    "againOf",
)


def export_runs(runs: QuerySet[Run]) -> StreamingHttpResponse:
    """Return the first EXPORT_MAX runs as a CSV file in UTF-8, in the order of the list."""
    name = f"runs-{datetime.now(UTC):%Y-%m-%d-%H%M%S}.csv"
    return StreamingHttpResponse(
        _lines(runs),
        content_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Content-Type-Options": "nosniff",
        },
    )


def _lines(runs: QuerySet[Run]) -> Iterator[bytes]:
    yield b"\xef\xbb\xbf"  # spreadsheets read the file as UTF-8
    yield _line(_COLUMNS)
    for run in runs[:EXPORT_MAX].iterator(chunk_size=_CHUNK):
        yield _line([_cell(value) for value in _values(run)])


def _values(run: Run) -> tuple[object, ...]:
    labels = ", ".join(f"{name}={value}" for name, value in (run.labels or {}).items())
    return (
        run.id,
        run.status,
        run.template_id,
        run.subject,
        labels,
        run.error_code,
        run.error_cause,
        run.error_site,
        run.result_summary,
        run.done_steps,
        run.total_steps,
        run.active_ms,
        run.created_at,
        run.started_at,
        run.ended_at,
        run.principal_id,
        run.user_id,
        run.workspace_id,
        run.task_id,
        run.retry_of,
        run.again_of,
    )


def _cell(value: object) -> object:
    """Return a value as a cell; a text that a spreadsheet would run as a formula begins with an
    apostrophe.
    """
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds")
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return "" if value is None else value


def _line(cells: Iterable[object]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(cells)
    return buffer.getvalue().encode("utf-8", "replace")
