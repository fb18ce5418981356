"""What pages show of a run: its template, its status, its progress, its elapsed time."""

from __future__ import annotations

from datetime import UTC, datetime

from django.utils.safestring import SafeString
from django.utils.translation import gettext

from decisions.foundation.presentation.html import admin_url, pill, status_pill
from decisions.foundation.presentation.visible_text import visible
from runs.models import Run, RunStatus
from runs.queries.run_search import waiting_runs as waiting_runs
from runs.task_templates.registry import get_template

WAITING = "waiting"


def is_waiting(run: Run) -> bool:
    """Return whether the run is suspended: it waits for a person."""
    return run.status == RunStatus.RUNNING and not run.ready and run.waiting_for is not None


def state_pill(run: Run) -> SafeString:
    """Return the run's status as a coloured label; "waiting for a person" if it is suspended."""
    return pill("waiting for a person", WAITING) if is_waiting(run) else status_pill(run.status)


def label_chips(run: Run) -> list[dict[str, str]]:
    """Return the run's labels as pages show them, each with the query of the list of its runs."""
    texts = [f"{name}={value}" for name, value in (run.labels or {}).items()]
    return [{"text": visible(text), "query": text} for text in texts]


def elapsed_ms(run: Run, now: datetime | None = None) -> float | None:
    """Return the milliseconds from the run's start to its end or to now; None before its start."""
    if run.started_at is None:
        return None
    until = run.ended_at or now or datetime.now(UTC)
    return max(0.0, (until - run.started_at).total_seconds() * 1000)


def template_name(template_id: str) -> str:
    """Return a template's name in the page's language; its id if it is no longer installed."""
    template = get_template(template_id)
    return gettext(template.name) if template else template_id


def run_page(run_id: str) -> str:
    """Return the URL of a run's page."""
    return admin_url("run", run_id) or ""


def done_percent(run: Run) -> float:
    """Return how many percent of the run's steps are done."""
    percent = 100 * run.done_steps / run.total_steps if run.total_steps else 0
    return round(min(percent, 100), 1)
