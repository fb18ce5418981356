"""How a run ends: its error, warnings and next actions, derived from its steps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from decisions.foundation.next_actions import (
    SEE_TEMPLATE,
    NextAction,
    next_action,
    next_actions_after,
)
from decisions.foundation.security.masking import map_texts
from decisions.foundation.security.url_credentials import mask_url_credentials
from runs.models import RunStatus
from runs.task_templates.base import Conclusion, StepView
from runs.task_templates.matches import match_warnings
from runs.task_templates.page_texts import has_sections

RECOVERY = "Retry or repair only the failed step."
MORE_TIME = "Raise timeoutMs, make the batch smaller, or split the task."
MAX_TIMEOUT_MS = 600_000
WAIT_MS, MAX_WAIT_MS = 10_000, 120_000  # of a condition: the default, and the longest
RESUBMIT_MAX_BYTES = 8192  # of inputs that a next action repeats
# Codes that a failed step passes on to its run (S0 §5); others become STEP_EXECUTION_FAILED.
OWN_CODES = frozenset(
    {
        "ELEMENT_NOT_FOUND",
        "NAVIGATION_TIMEOUT",
        "PAGE_CRASHED",
        "INVALID_PARAMETER",
        "EXECUTION_ERROR",
        "RUN_TIMEOUT",
        "STEP_EXECUTION_FAILED",
        "TRUST_LEVEL_NOT_ALLOWED",
        "TPL_LOGIN_FIELD_NOT_FOUND",
        "SESSION_NOT_FOUND",
    }
)
MAX_WARNINGS = 20


def failed_step(steps: Sequence[StepView]) -> StepView | None:
    """Return the first step that failed, or None."""
    return next((step for step in steps if step.error is not None), None)


def run_error(step: StepView, **details: Any) -> dict[str, Any]:
    """Return the error of a run that ends with a failed step: the step's error and number.

    Args:
        details: entries to add to the error's details.
    """
    error = dict(step.error or {})
    code = str(error.get("errorCode", "STEP_EXECUTION_FAILED"))
    all_details = {**(error.get("details") or {}), **details}
    if code not in OWN_CODES:
        all_details, code = {"causeCode": code, **all_details}, "STEP_EXECUTION_FAILED"
    return {**error, "errorCode": code, "details": all_details, "step": _step_reference(step)}


def failed_conclusion(
    step: StepView,
    *,
    template_id: str,
    inputs: Mapping[str, Any],
    again: bool = True,
    **details: Any,
) -> Conclusion:
    """Return the conclusion of a run that a failed step ended.

    Args:
        again: the same submit may be repeated: the run changed nothing outside.
        details: entries to add to the error's details.
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
) -> list[NextAction]:
    """Return tool calls that may help after this error, with their arguments filled in.

    One whose URLs have credentials is left out: masked it would be another call.
    """
    found = _next_actions(error, template_id=template_id, inputs=inputs, again=again)
    return [one for one in found if _without_credentials(one) == one]


def _without_credentials(action: NextAction) -> Any:
    return map_texts(action, mask_url_credentials, change_name=mask_url_credentials)


def _next_actions(
    error: Mapping[str, Any], *, template_id: str, inputs: Mapping[str, Any], again: bool
) -> list[NextAction]:
    code, details = error["errorCode"], error.get("details") or {}
    url = details.get("url") or inputs.get("startUrl")
    if code == "ELEMENT_NOT_FOUND" and _is_web(url):
        return [_read_page(url, "See which elements the page has, then correct the locator.")]
    if again and error.get("retryable"):
        return _submit_again(error, template_id, inputs)
    if _sent_nothing(details) and _is_web(url):
        return [_read_page(url, "See which button sends it, then name it in `submit`.")]
    known = next_actions_after(code)
    if code == "INVALID_PARAMETER":
        known = [next_action("list_task_templates", SEE_TEMPLATE, templateId=template_id)]
    if known or again or not _is_web(url):
        return known
    return [_read_page(url, "Check on the site what happened before you send anything again.")]


def _sent_nothing(details: Mapping[str, Any]) -> bool:
    """Return whether an error says that a submit caused nothing."""
    after = details.get("afterSubmit")
    is_idle = isinstance(after, Mapping) and not any(after.values())
    return is_idle or details.get("reason") in ("nothing_happened", "link_followed")


def _submit_again(
    error: Mapping[str, Any], template_id: str, inputs: Mapping[str, Any]
) -> list[NextAction]:
    condition = (error.get("details") or {}).get("condition")
    if condition is not None:
        return _wait_longer(str(condition), template_id, inputs)
    return _resubmit(error["errorCode"], template_id, inputs)


def _wait_longer(name: str, template_id: str, inputs: Mapping[str, Any]) -> list[NextAction]:
    """Return the same submit with twice the time for the condition in the input `name`."""
    first, _, rest = name.partition(".")
    outer = inputs.get(first) or {}
    condition = outer.get(rest) if rest else outer
    if not isinstance(condition, Mapping):
        return _resubmit("NAVIGATION_TIMEOUT", template_id, inputs)
    longer = min(MAX_WAIT_MS, 2 * int(condition.get("timeoutMs") or WAIT_MS))
    waiting = {**condition, "timeoutMs": longer}
    changed = {**inputs, first: {**outer, rest: waiting} if rest else waiting}
    reason = f"Wait longer, if the page was only late; else correct {name} (see details.shown)."
    return _submit(reason, template_id, changed)


def _resubmit(code: str, template_id: str, inputs: Mapping[str, Any]) -> list[NextAction]:
    """Return the same submit with more time."""
    late = code in ("NAVIGATION_TIMEOUT", "PAGE_CRASHED", "RUN_TIMEOUT")
    reason = "Try again with more time." if late else "Submit the same once more."
    return _submit(reason, template_id, inputs)


def _submit(reason: str, template_id: str, inputs: Mapping[str, Any]) -> list[NextAction]:
    """Return a submit, if its inputs are small enough to repeat."""
    if len(orjson.dumps(inputs)) > RESUBMIT_MAX_BYTES:
        return []
    options = {"mode": "async", "timeoutMs": MAX_TIMEOUT_MS}
    return [
        next_action(
            "run_task_template",
            reason,
            templateId=template_id,
            inputs=dict(inputs),
            options=options,
        )
    ]


def _is_web(url: object) -> bool:
    return isinstance(url, str) and url.startswith(("http://", "https://"))


def _read_page(url: object, reason: str) -> NextAction:
    inputs = {"urls": [url]}
    return next_action("run_task_template", reason, templateId="batch_extract_pages", inputs=inputs)


def warnings_of(steps: Sequence[StepView]) -> list[str]:
    """Return the warnings of steps that share a page, each once, at most MAX_WARNINGS."""
    warnings = [
        warning
        for output in (step.output or {} for step in steps)
        for warning in (*match_warnings(output), *output.get("warnings", ()))
    ]
    return _limited(list(dict.fromkeys(warnings)))


# Short texts of pages that are not what the caller wants to read.
_LOADING = re.compile(r"\b(loading|please wait|searching|fetching)\b|加载中|正在加载|请稍候", re.I)
_NOT_FOUND = re.compile(r"not found|does not exist|\b404\b|找不到|不存在", re.I)
_BOT_CHECK = re.compile(
    r"just a moment|checking your browser|verify (that )?you are (a )?human|are you a robot", re.I
)
_SHORT_CHARACTERS = 80


def unread_warning(page: Mapping[str, Any]) -> str | None:
    """Return a warning if a page's text is empty, or short and that of a page that is loading, was
    not found, or checks for robots; None if its text was not requested.
    """
    content = page.get("content")
    if not has_sections(content):
        return None
    sections = (content or {})["sections"]
    text = " ".join(section["text"] for section in sections).strip()
    shown = " ".join([str(page.get("title") or ""), *(row["heading"] for row in sections), text])
    if not text:
        return "The page has no text."
    if len(text) >= _SHORT_CHARACTERS:
        return None
    kinds = ((_LOADING, text, "is still loading"), (_BOT_CHECK, shown, "checks for robots"))
    for pattern, where, kind in (*kinds, (_NOT_FOUND, shown, "was not found")):
        if pattern.search(where):
            return f"The page seems not to be read: it {kind}, by its text “{text}”."
    return None


def warnings_of_items(steps: Sequence[StepView]) -> list[str]:
    """Return the warnings of steps that read one URL each, prefixed with the URL."""
    warnings = [
        f"{step.input['url']}: {warning}"
        for step in steps
        for warning in (*(step.output or {}).get("warnings", []), unread_warning(step.output or {}))
        if warning is not None
    ]
    return _limited(warnings)


def _limited(warnings: list[str]) -> list[str]:
    more = len(warnings) - MAX_WARNINGS
    return warnings[:MAX_WARNINGS] + ([f"… and {more} more warnings"] if more > 0 else [])


def common_error(items: Sequence[Mapping[str, Any]], steps: Sequence[StepView]) -> dict[str, Any]:
    """Return the error of a run that read none of its pages: the code that all failures have in
    common, else STEP_EXECUTION_FAILED. It is retryable if one of them is; `step` is the first that
    failed, or the first that is retryable.
    """
    errors = [item["error"] or {} for item in items]
    failed = [step for step in steps if step.error is not None]
    again = [n for n, error in enumerate(errors) if error.get("retryable")]
    common: dict[str, Any] = {"retryable": bool(again), "recovery": _common_recovery(errors, again)}
    if len(items) == 1:
        common |= {
            "errorCode": errors[0].get("errorCode", "STEP_EXECUTION_FAILED"),
            "message": str(errors[0].get("message", "No page could be read.")),
            "details": {**(errors[0].get("details") or {}), "items": _failures(items)},
        }
    else:
        common |= _several(items, errors)
        common["details"]["retryableItems"] = again
    if failed:
        first = next((step for step in failed if (step.error or {}).get("retryable")), failed[0])
        common["step"] = _step_reference(first)
    return common


def _step_reference(step: StepView) -> dict[str, Any]:
    return {"step": step.index, "name": step.name}


def _several(
    items: Sequence[Mapping[str, Any]], errors: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return errorCode, message and details of the failures of several pages."""
    codes = Counter(error.get("errorCode", "STEP_EXECUTION_FAILED") for error in errors)
    first = errors[0].get("message", "")
    is_same = len({error.get("message") for error in errors}) == 1
    details: dict[str, Any] = {"items": _failures(items)}
    if len(codes) > 1:
        details["causeCodes"] = dict(codes)
    return {
        "errorCode": next(iter(codes)) if len(codes) == 1 else "STEP_EXECUTION_FAILED",
        "message": f"None of the {len(items)} pages could be read"
        + (f": {first}" if is_same else f" (details.items). The first: {first}"),
        "details": details,
    }


def _common_recovery(errors: Sequence[Mapping[str, Any]], again: Sequence[int]) -> str:
    """Return what to do about failed pages, of which those at the indexes `again` are retryable."""
    recoveries = {str(error.get("recovery", RECOVERY)) for error in errors}
    if len(recoveries) == 1:
        return recoveries.pop()
    if not again:
        return "Reading them again does not help; the recovery of each item says what to do."
    if len(again) == len(errors):
        return "Read them again; the recovery of each item says what else may help."
    return (
        f"Read again only the {len(again)} of {len(errors)} pages in details.retryableItems; the"
        " recovery of each other item says what to do."
    )


def _failures(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the failed items, without the recovery that an earlier one with the same code has."""
    seen: set[tuple[Any, Any]] = set()
    failures = []
    for item in items:
        error = dict(item["error"] or {})
        recovery = (error.get("errorCode"), error.get("recovery"))
        if recovery in seen:
            del error["recovery"]
        elif "recovery" in error:
            seen.add(recovery)
        failures.append({"url": item["url"], "success": False, "error": error or item["error"]})
    return failures
