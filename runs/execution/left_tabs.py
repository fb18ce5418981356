"""The tabs that a canceled or timed out run leaves in a paired browser."""

from __future__ import annotations

import logging

from django.db import Error

from runners.invocation.event_loop import get_loop
from runners.invocation.paired_tabs import BUSY_S, close_tabs_of_task
from runners.paired_browser.choice import SELECTED, PairedBrowser
from runs.models import Run, Task

_MARGIN_S = 10.0
log = logging.getLogger(__name__)


def close_left_tabs(run: Run) -> None:
    """Close the tabs of a run that ended early, unless a person has taken them over, or the run or
    another one of the task goes on in them.
    """
    if run.task_id is None or SELECTED not in run.inputs:
        return
    unfinished = Run.objects.filter(task_id=run.task_id, ended_at__isnull=True)
    try:
        if Task.objects.is_taken_over(run.task_id) or unfinished.exists():
            return
    except Error as error:
        log.warning("the tabs of a run stay open: %s", error, extra={"runId": run.id})
        return
    browser = PairedBrowser(str(run.inputs[SELECTED]), run.task_id, "", "")
    if not get_loop().run(close_tabs_of_task(browser), BUSY_S + _MARGIN_S):
        log.info("the tabs of a run in a person's browser stay open", extra={"runId": run.id})
