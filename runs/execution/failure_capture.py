"""Store a screenshot and a Playwright trace of the page that a step failed on.

Only runs whose steps share one page are traced: there the steps before explain a failure. The pages
of a batch fail independently, and tracing would slow the others in the same browser context.
"""

from __future__ import annotations

from django.conf import settings

from runners.errors import AddressNotAllowed, ToolFailed
from runs.execution.step_context import StepRun
from runs.journal.interruptions import CallFailed
from runs.task_templates.base import StepPlan, TaskTemplate

# Errors from before a page was opened.
PAGELESS = frozenset({"INVALID_PARAMETER", "TRUST_LEVEL_NOT_ALLOWED", "SESSION_NOT_FOUND"})


async def start_trace_if_required(
    template: TaskTemplate, plan: StepPlan, step_run: StepRun
) -> None:
    """Start the trace of a step, if the settings or a retried run require it."""
    is_required = settings.TRACE == "always" or step_run.run.retry_of is not None
    if is_required and step_run.browser is not None and _may_trace(template, step_run):
        await step_run.browser.tracer.record(plan.name)


async def add_evidence(
    failure: CallFailed | ToolFailed, template: TaskTemplate, plan: StepPlan, step_run: StepRun
) -> None:
    """Add the artifact ids of a screenshot and a trace to the error of a failed step."""
    error = dict(failure.error if isinstance(failure, CallFailed) else failure.as_dict())
    if step_run.browser is None or error["errorCode"] in PAGELESS:
        return
    url = None if template.shares_page else plan.input.get("url")
    artifacts = {"screenshotArtifactId": await step_run.save_screenshot(url=url)}
    if _may_trace(template, step_run):
        title = f"{plan.name}: {error['errorCode']}"
        artifacts["traceArtifactId"] = await step_run.save_trace(title)
    stored = {name: artifact_id for name, artifact_id in artifacts.items() if artifact_id}
    if not stored:
        return
    details = {**(error.get("details") or {}), **stored}
    if isinstance(failure, CallFailed):
        failure.error = error | {"details": details}
    else:
        failure.details = details


def _may_trace(template: TaskTemplate, step_run: StepRun) -> bool:
    """Return whether a trace may be stored: never of a run with secret inputs, whose typing it
    would record.
    """
    holds_secrets = step_run.run.holds_secrets
    return template.shares_page and not holds_secrets and settings.TRACE != "never"


def mark_refusal_reported(failure: CallFailed | ToolFailed, step_run: StepRun) -> None:
    """Mark the host named by an error as reported, so that no warning of the session repeats it."""
    error = failure.error if isinstance(failure, CallFailed) else failure.as_dict()
    if step_run.browser is not None and error["errorCode"] == AddressNotAllowed.code:
        step_run.browser.mark_refusal_reported(str((error.get("details") or {}).get("host")))
