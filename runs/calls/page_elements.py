"""The element of a page that a step's call uses: asked of the page before policy decides, shown to
who confirms the call, and bound to the confirmation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from decisions.authorization.authorize import Authorization, ToolCallRequest
from decisions.authorization.policy import current_policy
from decisions.authorization.sealed_arguments import CannotBeShown, open_arguments
from decisions.models import Decision
from runners.actions.judged import (
    CHANGED,
    JudgedElement,
    JudgeRequest,
    covered_tools,
    expected_element,
    is_judged,
)
from runners.errors import ElementChanged
from runners.paired_browser.choice import is_paired_browser
from runners.tools.base import ExpectedElement
from runs.calls.shown_page import is_secret_field, with_facts

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


def with_covered_tools(
    request: ToolCallRequest, judged: JudgedElement | None = None
) -> ToolCallRequest:
    """Return the request with the other tools that it does the same as, by the page or, without
    it, by what may be.
    """
    if not request.is_builtin or not is_judged(request.tool):
        return request
    return replace(request, covers=covered_tools(request.tool, request.args, judged))


def may_ask_page(request: ToolCallRequest) -> bool:
    """Return whether a call uses an element that the page can be asked about."""
    return request.is_builtin and is_judged(request.tool) and not request.is_lost


def needs_page(request: ToolCallRequest) -> bool:
    """Return whether the page is asked before the call is decided on: always in a paired
    browser, else where a rule may deny it or have it confirmed. On the run's database thread.
    """
    policy = current_policy(
        principal_id=request.principal_id,
        tenant_id=request.tenant_id,
        workspace_id=request.workspace_id,
    )
    where: dict[str, Any] = {"is_builtin": True, "default": request.default}
    own = policy.evaluate(request.tool, request.target_id, **where)
    if own.decision == "deny":
        return False
    if is_paired_browser(request.target_id) or own.decision == "confirm":
        return True
    verdict = policy.evaluate(request.tool, request.target_id, covers=request.covers, **where)
    return verdict.decision != "allow"


def with_element(request: ToolCallRequest, judged: JudgedElement) -> ToolCallRequest:
    """Return the request bound to the element that it uses."""
    return with_covered_tools(replace(request, basis=judged.basis), judged)


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
