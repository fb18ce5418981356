"""Store a screenshot and a Playwright trace of the page that a step failed on.

Only runs whose steps share one page are traced: there the steps before explain a failure. The pages
of a batch fail independently, and tracing would slow the others in the same browser context.
"""

from __future__ import annotations

from django.conf import settings

from runners.browser.reading.screenshot import save_screenshot
from runners.errors import AddressNotAllowed, ToolFailed
from runs.calls.attempt import StepAttempt
from runs.journal.interruptions import CallFailed
from runs.task_templates.base import StepPlan, TaskTemplate

# Errors from before a page was opened.
PAGELESS = frozenset({"INVALID_PARAMETER", "TRUST_LEVEL_NOT_ALLOWED", "SESSION_NOT_FOUND"})


async def start_trace_if_required(
    template: TaskTemplate, plan: StepPlan, attempt: StepAttempt
) -> None:
    """Start the trace of a step, if the settings or a retried run require it."""
    is_required = settings.TRACE == "always" or attempt.run.retry_of is not None
    if is_required and attempt.browser is not None and _may_trace(template, attempt):
        await attempt.browser.tracer.record(plan.name)


async def add_evidence(
    failure: CallFailed | ToolFailed, template: TaskTemplate, plan: StepPlan, attempt: StepAttempt
) -> None:
    """Add the artifact ids of a screenshot and a trace to the error of a failed step."""
    error = dict(failure.error if isinstance(failure, CallFailed) else failure.as_dict())
    if attempt.browser is None or error["errorCode"] in PAGELESS:
        return
    url = None if template.shares_page else plan.input.get("url")
    artifacts = {"screenshotArtifactId": await _screenshot(attempt, url)}
    if _may_trace(template, attempt):
        title = f"{plan.name}: {error['errorCode']}"
        artifacts["traceArtifactId"] = await _trace(attempt, title)
    stored = {name: artifact_id for name, artifact_id in artifacts.items() if artifact_id}
    if not stored:
        return
    details = {**(error.get("details") or {}), **stored}
    if isinstance(failure, CallFailed):
        failure.error = error | {"details": details}
    else:
        failure.details = details


async def _screenshot(attempt: StepAttempt, url: str | None) -> str | None:
    """Store a screenshot of the page that the step failed on, unless it stored one; return its
    artifactId.
    """
    if any(blob.kind == "screenshot" for blob in attempt.blobs):
        return None
    return await save_screenshot(attempt.tool_context(), url=url)


async def _trace(attempt: StepAttempt, title: str) -> str | None:
    """Store the trace of what led to a failure under a title; return its artifactId."""
    data = None if attempt.browser is None else await attempt.browser.take_trace(title)
    if data is None:
        return None
    return await attempt.save(data, name="trace.zip", mime_type="application/zip", kind="trace")


def _may_trace(template: TaskTemplate, attempt: StepAttempt) -> bool:
    """Return whether a trace may be stored: never of a run with secret inputs, whose typing it
    would record.
    """
    holds_secrets = attempt.run.holds_secrets
    return template.shares_page and not holds_secrets and settings.TRACE != "never"


def mark_refusal_reported(failure: CallFailed | ToolFailed, attempt: StepAttempt) -> None:
    """Mark the host named by an error as reported, so that no warning of the session repeats it."""
    error = failure.error if isinstance(failure, CallFailed) else failure.as_dict()
    if attempt.browser is not None and error["errorCode"] == AddressNotAllowed.code:
        attempt.browser.mark_refusal_reported(str((error.get("details") or {}).get("host")))
