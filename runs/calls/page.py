"""The element of a page that a step's call uses: asked of the page before policy decides, shown to
the person who confirms the call, and bound to the confirmation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from decisions.authorization.authorize import Authorization, ToolCallRequest
from decisions.authorization.policy import current_policy
from decisions.authorization.sealed_arguments import CannotBeShown, open_arguments
from decisions.foundation.errors import Refused
from decisions.models import Decision
from runners.actions.judged import (
    CHANGED,
    JudgedElement,
    JudgeRequest,
    covered_tools,
    expected_element,
    is_judged,
)
from runners.errors import ElementChanged, ToolFailed
from runners.invocation.judge import judge_element, request_for
from runners.paired_browser.choice import is_paired_browser
from runners.tools.base import ExpectedElement
from runs.calls.attempt import StepAttempt
from runs.calls.browser_policy import with_browser_policy
from runs.calls.policy import is_taken_over
from runs.calls.shown_page import is_secret_field, with_facts
from runs.calls.target import find_call_target
from runs.models import Run

MAX_RENEWALS = 2  # new confirmations of a call whose element changed
BEFORE = "Before"  # of the names of facts as an earlier confirmation showed them
FACTS = ("page", "element", "toElement", "submits", "sent", "link", "frame")


@dataclass(frozen=True, slots=True)
class PageCall:
    """A call with the element that it uses."""

    asked: JudgeRequest
    judged: JudgedElement

    def expected(self, authorization: Authorization) -> ExpectedElement:
        """Return the element that gets the input: where a person confirmed the call, only if it is
        as it was judged.
        """
        is_confirmed = authorization.confirmation is not None
        return expected_element(self.asked, self.judged, compares=is_confirmed)


def may_ask_page(request: ToolCallRequest) -> bool:
    """Return whether a call uses an element that the page can be asked about."""
    return request.is_builtin and is_judged(request.tool) and not request.is_lost


async def judge_page(
    attempt: StepAttempt, request: ToolCallRequest, *, is_asked: bool
) -> tuple[ToolCallRequest, PageCall | None]:
    """Return the request bound to the element that the call uses, if the page has to say that
    before the call is decided on, and the element.

    Args:
        is_asked: the page has to say it, whatever the rules.

    Raises:
        ToolFailed: There is no such element; nothing was done.
    """
    page = await _ask(attempt, request, is_asked=is_asked) if may_ask_page(request) else None
    judged = None if page is None else page.judged
    if judged is not None:
        covers = covered_tools(request.tool, request.args, judged)
        request = replace(request, basis=judged.basis, covers=covers)
    if is_paired_browser(request.target_id):
        request = await attempt.query_run(lambda run: with_browser_policy(run, request, judged))
    return request, page


async def _ask(
    attempt: StepAttempt, request: ToolCallRequest, *, is_asked: bool
) -> PageCall | None:
    is_elsewhere = is_paired_browser(request.target_id)
    if not is_elsewhere and (attempt.browser is None or not attempt.browser.has_page):
        return None
    if not await attempt.query_run(lambda run: _has_to_ask(run, request, is_asked=is_asked)):
        return None
    asked = request_for(request.tool, request.args)
    if asked is None:
        return None
    browser = attempt.paired_browser(request) if is_elsewhere else None
    return PageCall(asked, await judge_element(asked, attempt.tool_context(paired_browser=browser)))


def _has_to_ask(run: Run, request: ToolCallRequest, *, is_asked: bool) -> bool:
    """Return whether the page is asked before the call is decided on: always in a paired
    browser, else where a rule may deny the call or have it confirmed. Not while a person has taken
    the page over, or where the browser is not the caller's: the start of the call says so.
    """
    if is_taken_over(run) or isinstance(find_call_target(run, request), Refused | ToolFailed):
        return False
    if is_asked:
        return True
    policy = current_policy(request)
    where: dict[str, Any] = {"is_builtin": True, "default": request.default}
    own = policy.evaluate(request.tool, request.target_id, **where)
    if own.decision == "deny":
        return False
    if is_paired_browser(request.target_id) or own.decision == "confirm":
        return True
    verdict = policy.evaluate(request.tool, request.target_id, covers=request.covers, **where)
    return verdict.decision != "allow"


def with_shown_element(
    request: ToolCallRequest, judged: JudgedElement, superseded: int | None
) -> ToolCallRequest:
    """Return the request with what a person sees of its element, and how an earlier confirmation
    showed it. A text that is typed into a secret field is masked. On the run's database thread.
    """
    shown = judged.shown()
    before = {} if superseded is None else _shown_before(superseded)
    changed = {name + BEFORE: text for name, text in before.items() if shown.get(name) != text}
    shown |= changed
    return with_facts(request, shown, is_secret=judged.is_secret or is_secret_field(judged.line))


def counted_warning(decision: Decision, judged: JudgedElement) -> str:
    """Return that a number in the element's line is another one than when the call was confirmed;
    empty if it is the same. On the run's database thread.
    """
    before = _shown_before(decision.pk).get("element", judged.line)
    if before == judged.line:
        return ""
    return f"The element was confirmed as {before}, and was {judged.line} before the input."


def with_warning(outcome: dict[str, Any], warning: str) -> dict[str, Any]:
    """Return the outcome of a call that succeeded with one more warning, if there is one."""
    output = outcome.get("output")
    if not warning or not isinstance(output, Mapping):
        return outcome
    return {"output": {**output, "warnings": [*output.get("warnings", ()), warning]}}


def _shown_before(decision_id: int) -> dict[str, str]:
    decision = Decision.objects.filter(pk=decision_id).first()
    try:
        args = {} if decision is None else open_arguments(decision)
    except CannotBeShown:
        return {}
    return {name: str(args[name]) for name in FACTS if name in args}


def changed_too_often(judged: JudgedElement, superseded: int | None) -> ElementChanged:
    """Return the failure for an element that changed after each confirmation."""
    before = {} if superseded is None else _shown_before(superseded)
    shown = judged.shown()
    changed = {
        name: [before.get(name, ""), shown.get(name, "")]
        for name in FACTS
        if before.get(name, "") != shown.get(name, "")
    }
    return ElementChanged(
        f"The element changed each time that the call was confirmed: {changed}."[:1000],
        details={"reason": CHANGED, "changed": changed, "effect": "none"},
    )


def was_changed(outcome: Mapping[str, Any]) -> bool:
    """Return whether a call did nothing because its element was not as it was judged."""
    details = (outcome.get("error") or {}).get("details") or {}
    return details.get("reason") == CHANGED and details.get("effect") == "none"
