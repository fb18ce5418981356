"""What steps amount to: the error, the warnings and the next calls that a run ends with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from runs.models import RunStatus
from runs.task_templates.registry import Conclusion, StepView

RECOVERY = "Retry or mend the failed step alone."
LONGEST_MS = 600_000
# S0 §5: what keeps its own code; any other ends a run as STEP_EXECUTION_FAILED (runs.md).
OWN_CODES = frozenset({
    "ELEMENT_NOT_FOUND", "NAVIGATION_TIMEOUT", "PAGE_CRASHED", "INVALID_PARAMETER",
    "EXECUTION_ERROR", "RUN_TIMEOUT", "STEP_EXECUTION_FAILED", "TRUST_LEVEL_NOT_ALLOWED",
    "TPL_LOGIN_FIELD_NOT_FOUND", "SESSION_NOT_FOUND",
})  # fmt: skip
WARNINGS = 20


def failed_step(steps: Sequence[StepView]) -> StepView | None:
    """Return the first step that failed, or None."""
    return next((step for step in steps if step.error is not None), None)


def run_error(step: StepView, **details: Any) -> dict[str, Any]:
    """Return the error of a run that ends with a failed step: the step's own, and which it was."""
    error = dict(step.error or {})
    code = str(error.get("errorCode", "STEP_EXECUTION_FAILED"))
    told = {**(error.get("details") or {}), **details}
    if code not in OWN_CODES:
        told, code = {"causeCode": code, **told}, "STEP_EXECUTION_FAILED"
    return {**error, "errorCode": code, "details": told,
            "step": {"step": step.index, "name": step.name}}  # fmt: skip


def ends_with(
    step: StepView, *, template_id: str, inputs: Mapping[str, Any], again: bool = True,
    **details: Any,
) -> Conclusion:  # fmt: skip
    """Return the conclusion of a run that cannot go on after a failed step.

    `again`: the same call may be made once more, for it changed nothing out there.
    """
    error = run_error(step, **details)
    return Conclusion(
        RunStatus.FAILED,
        error=error,
        summary=f"'{step.name}' failed: {error.get('message', '')}"[:500],
        next_actions=next_actions(error, template_id=template_id, inputs=inputs, again=again),
    )


def next_actions(
    error: Mapping[str, Any], *, template_id: str, inputs: Mapping[str, Any], again: bool
) -> list[dict[str, Any]]:
    """Return the calls that would help after this error, each ready to be made."""
    code, details = error["errorCode"], error.get("details") or {}
    url = details.get("url") or inputs.get("startUrl")
    if code == "ELEMENT_NOT_FOUND" and _is_web(url):
        return [_read(url, "See which elements the page has, then mend the locator.")]
    if code in ("NAVIGATION_TIMEOUT", "PAGE_CRASHED", "RUN_TIMEOUT") and again:
        args = {"templateId": template_id, "inputs": dict(inputs),
                "options": {"mode": "async", "timeoutMs": LONGEST_MS}}  # fmt: skip
        return [{"tool": "run_task_template", "args": args, "reason": "Try again with more time."}]
    if code == "INVALID_PARAMETER":
        reason = "See what the template takes, then correct the parameter named in the message."
        return [{"tool": "list_task_templates", "args": {}, "reason": reason}]
    if not again and _is_web(url):
        return [_read(url, "See at the site what came of it before anything is sent again.")]
    return []


def _is_web(url: object) -> bool:
    return isinstance(url, str) and url.startswith(("http://", "https://"))


def _read(url: object, reason: str) -> dict[str, Any]:
    args = {"templateId": "batch_extract_pages", "inputs": {"urls": [url]}}
    return {"tool": "run_task_template", "args": args, "reason": reason}


def warnings_of(steps: Sequence[StepView]) -> list[str]:
    """Return what the steps of a run on one page warn of, each once."""
    told = [warning for step in steps for warning in (step.output or {}).get("warnings", [])]
    return _some(list(dict.fromkeys(told)))


def warnings_of_items(steps: Sequence[StepView]) -> list[str]:
    """Return what steps that read an address each warn of, with the address."""
    told = [
        f"{step.input['url']}: {warning}"
        for step in steps
        for warning in (step.output or {}).get("warnings", [])
    ]
    return _some(told)


def _some(told: list[str]) -> list[str]:
    more = len(told) - WARNINGS
    return told[:WARNINGS] + ([f"… and {more} more warnings"] if more > 0 else [])


def common_error(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the error of a run none of whose pages was read: their common code, else
    STEP_EXECUTION_FAILED.
    """
    errors = [item["error"] or {} for item in items]
    codes = Counter(error.get("errorCode", "STEP_EXECUTION_FAILED") for error in errors)
    first = errors[0]
    told = [{"url": item["url"], "success": False, "error": item["error"]} for item in items]
    if len(codes) == 1:
        return {
            "errorCode": next(iter(codes)),
            "message": str(first.get("message", "No page could be read."))
            if len(items) == 1
            else f"None of the {len(items)} pages could be read: {first.get('message', '')}",
            "retryable": bool(first.get("retryable")),
            "recovery": first.get("recovery", RECOVERY),
            "details": {**(first.get("details") or {} if len(items) == 1 else {}), "items": told},
        }
    return {
        "errorCode": "STEP_EXECUTION_FAILED",
        "message": f"None of the {len(items)} pages could be read, for different reasons.",
        "retryable": any(error.get("retryable") for error in errors),
        "recovery": RECOVERY,
        "details": {"causeCodes": dict(codes), "items": told},
    }
