"""What is kept of a page that a step failed on, for whoever wants to know why: a picture, a trace.

Traces are of runs whose steps share one page: there a failure has a story. Pages of a batch fail
each by itself, over an address; to record them would slow the others in the same browser context.
"""

from __future__ import annotations

from django.conf import settings

from runners.errors import AddressNotAllowed, ToolFailed
from runs.execution.step_context import StepRun
from runs.journal.interruptions import CallFailed
from runs.task_templates.base import StepPlan, TaskTemplate

# Refused before a page was there.
PAGELESS = frozenset({"INVALID_PARAMETER", "TRUST_LEVEL_NOT_ALLOWED", "SESSION_NOT_FOUND"})


async def record_if_wanted(template: TaskTemplate, plan: StepPlan, step_run: StepRun) -> None:
    """Record what the step does, where the settings and the run's kind say so."""
    is_wanted = settings.TRACE == "always" or step_run.run.retry_of is not None
    if is_wanted and step_run.browser is not None and _may_trace(template, step_run):
        await step_run.browser.tracer.record(plan.name)


async def add_evidence(
    failure: CallFailed | ToolFailed, template: TaskTemplate, plan: StepPlan, step_run: StepRun
) -> None:
    """Name a picture of the page and a trace, as far as there are some, in why a step failed."""
    told = dict(failure.error if isinstance(failure, CallFailed) else failure.as_dict())
    if step_run.browser is None or told["errorCode"] in PAGELESS:
        return
    url = None if template.shares_page else plan.input.get("url")
    kept = {"screenshotArtifactId": await step_run.save_screenshot(url=url)}
    if _may_trace(template, step_run):
        kept["traceArtifactId"] = await step_run.save_trace(f"{plan.name}: {told['errorCode']}")
    there = {name: artifact_id for name, artifact_id in kept.items() if artifact_id is not None}
    if not there:
        return
    details = {**(told.get("details") or {}), **there}
    if isinstance(failure, CallFailed):
        failure.error = told | {"details": details}
    else:
        failure.details = details


def _may_trace(template: TaskTemplate, step_run: StepRun) -> bool:
    """Tell whether a trace may be kept: never of a run with secret inputs, which it would record as
    they are typed.
    """
    holds_secrets = step_run.run.holds_secrets
    return template.shares_page and not holds_secrets and settings.TRACE != "never"


def mark_refusal_reported(failure: CallFailed | ToolFailed, step_run: StepRun) -> None:
    """Have the session know which host the failure itself names, so that no warning repeats it."""
    told = failure.error if isinstance(failure, CallFailed) else failure.as_dict()
    if step_run.browser is not None and told["errorCode"] == AddressNotAllowed.code:
        step_run.browser.mark_refusal_reported(str((told.get("details") or {}).get("host")))
