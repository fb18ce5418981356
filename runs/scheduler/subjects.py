"""Subjects and terms of runs that an older version submitted, also while it still runs beside this
one during an upgrade.
"""

from __future__ import annotations

import logging

from django.db import transaction

from decisions.foundation.errors import Refused
from runs.models import Run, RunTerms
from runs.search.terms import error_columns, terms_of
from runs.task_templates.registry import get_template
from runs.task_templates.subjects import subject_line

BATCH = 200
BATCHES = 20  # of one pass: the scheduler has other jobs
log = logging.getLogger(__name__)


def fill_in_subjects() -> int:
    """Write the subject, the terms and the codes of the error of runs without a subject, the newest
    first; return how many. Commits; safe to run concurrently.
    """
    filled = 0
    for _ in range(BATCHES):
        number = _fill_some()
        filled += number
        if number < BATCH:
            break
    return filled


def _fill_some() -> int:
    with transaction.atomic():
        runs = list(
            Run.objects.select_for_update(skip_locked=True, no_key=True)
            .filter(subject__isnull=True)
            .order_by("-created_at", "-id")[:BATCH]
        )
        for run in runs:
            run.subject = _subject_of(run)
            for name, value in error_columns(run.error, run.subject).items():
                setattr(run, name, value)
        Run.objects.bulk_update(runs, ["subject", *error_columns(None)])
        RunTerms.objects.filter(run_id__in=[run.id for run in runs]).delete()
        RunTerms.objects.bulk_create([RunTerms(run_id=run.id, terms=terms_of(run)) for run in runs])
    return len(runs)


def _subject_of(run: Run) -> str:
    """Return a run's subject; the id of its template if that cannot read its inputs any more."""
    template = get_template(run.template_id)
    if template is None:
        return run.template_id
    try:
        return subject_line(template.subject(run.inputs)) or template.name
    except (LookupError, TypeError, ValueError, AttributeError, Refused):
        log.warning("the subject of the run %s cannot be made from its inputs", run.id)
        return template.name
