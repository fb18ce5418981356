"""Locate the element that a locator describes, wait until it is usable, and report the match.

The search runs in the page (page/locate.js, page/target.js). This module calls it, calls it again
if the page navigates to another document meanwhile, and raises a failure that names the best
candidates if nothing was found.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runners.actions.judged import CHANGED, describe_change
from runners.browser.parameters import ElementReference, Locator, Purpose, SearchButton
from runners.browser.session.tab import Tab
from runners.errors import (
    ElementChanged,
    ElementNotFound,
    InvalidTarget,
    ToolFailed,
)
from runners.tools.base import ExpectedElement

ElementLocator = Locator | ElementReference | SearchButton
ANSWER_SECONDS = 6.0  # for the page's answer, in addition to the time in which it may search
TWO_ELEMENTS = "two_elements"  # the problem of a reference

_MESSAGES = {
    "no_match": "No element on the page matches {locator}.",
    "hidden": "The element for {locator} is hidden.",
    "disabled": "The element for {locator} is disabled.",
    "readonly": "The field for {locator} is read-only.",
    "file": "The field for {locator} is a file input; browser_upload gives it files.",
    "not_a_field": "The element for {locator} is not a field.",
    "covered": "Another element covers the element for {locator}.",
    "moving": "The element for {locator} keeps moving.",
    "outside": "The element for {locator} cannot be scrolled into view.",
    "gone": "The element for {locator} is no longer on the page; look at the page again.",
    "other_origin": "The element for {locator} is a frame of another origin, which gets no input;"
    " open its address as a page of its own.",
    "not_focusable": "The element for {locator} cannot have the focus.",
    "no_form": "The page has no form whose submit button could be clicked.",
}


@dataclass(frozen=True, slots=True)
class LocatedElement:
    """An element that is in view and usable.

    Attributes:
        match: the reported match: type, label, score 0..1, `by` which property, the words that
            `matched`, and how many candidates have the same score (`equals`; the first in the
            document was chosen).
        point: where to click it, in CSS pixels of the viewport; None if it will not be clicked.
        way: how its value is set: text, rich, set, choice, toggle, radio or none.
        key: the key to press in it instead of clicking it; "" for a click.
        url: the URL of its document.
        documents: `Tab.documents` when it was located.
        node: the name of the element (page/basis.js).
    """

    match: Mapping[str, Any]
    point: tuple[float, float] | None
    way: str
    is_secret: bool
    key: str
    url: str
    documents: int
    node: str


async def locate_element(
    tab: Tab,
    locator: ElementLocator | None,
    purpose: Purpose,
    *,
    until: float,
    will_click: bool = False,
    will_submit: bool = False,
    answer_by: float = math.inf,
    expected: ExpectedElement | None = None,
) -> LocatedElement:
    """Wait until a matching element is present and usable; without a locator, until a form is.

    Times are `time.monotonic()` values.

    Args:
        until: when the search ends.
        will_click: a mouse click follows; the page blocks it if it would hit another element.
        will_submit: of elements that fit equally well, one that may submit the field that was
            filled last.
        answer_by: a page that has not answered by then hangs.
        expected: the element that was judged; another one is none. A reference names it itself.

    Raises:
        ElementNotFound: details has the reason and the candidates, best first.
        InvalidTarget: The selector or XPath is invalid.
        NavigationTimeout, PageCrashed: As `Tab.run_command`.
    """
    documents = tab.documents

    def search_seconds() -> float:
        return max(0.0, until - time.monotonic())

    def request() -> dict[str, Any]:
        nonlocal documents
        documents = tab.documents
        return {
            "locator": locator.model_dump() if locator else None,
            "purpose": purpose,
            "timeoutMs": round(search_seconds() * 1000),
            "isGuarded": will_click,
            "isSubmit": will_submit,
            "expected": _as_request(expected),
        }

    answer = await tab.run_in_documents(
        "locate",
        request,
        lambda: min(search_seconds() + ANSWER_SECONDS, answer_by - time.monotonic()),
    )
    if answer["outcome"] == CHANGED:
        raise element_changed(locator, answer["changed"])
    if answer["outcome"] != "ready":
        raise _not_found(answer, locator, purpose, tab)
    return _located(answer, documents)


def judgement_failure(
    answer: Mapping[str, Any], locator: Mapping[str, Any] | None, purpose: str, tab: Tab
) -> ToolFailed:
    """Return the failure for an element that a call was to be judged by; nothing was done."""
    named = ElementReference if (locator or {}).get("mode") in (None, "pointed") else Locator
    reference = named.model_validate(dict(locator or {}))
    failure = _not_found(answer, reference, purpose, tab)
    failure.details.setdefault("effect", "none")
    return failure


def _as_request(expected: ExpectedElement | None) -> dict[str, Any] | None:
    return None if expected is None else {"node": expected.node, "compares": expected.compares}


def element_changed(
    reference: object, changed: Mapping[str, Any], *, effect: str = "none"
) -> ElementChanged:
    """Return the failure for an element that is not as it was judged."""
    differences = describe_change(changed)
    text = "; ".join(f"{name}: “{old}”, now “{new}”" for name, (old, new) in differences.items())
    return ElementChanged(
        f"The element for {reference or 'the submit'} is not as it was judged: {text}."[:1000],
        details={"reason": CHANGED, "changed": differences, "effect": effect},
    )


def names_two_elements(reference: object) -> InvalidTarget:
    """Return the failure for a clickId and an XPath that do not name the same element."""
    return InvalidTarget(
        f"clickId and xpath name two elements: {reference} and another. Give one of them.",
        details={"reason": TWO_ELEMENTS, "effect": "none"},
    )


def require_found(answer: Mapping[str, Any], target: ElementReference | None, url: str) -> None:
    """Raise the failure that the `problem` of a page's answer means; nothing was done.

    Raises:
        ElementNotFound: details.reason is the problem.
        InvalidTarget: The XPath is invalid.
    """
    if "problem" not in answer:
        return
    problem = answer["problem"]
    if problem == CHANGED:
        raise element_changed(target, answer["changed"])
    if problem == TWO_ELEMENTS:
        raise names_two_elements(target)
    if problem == "bad_xpath" and target is not None:
        raise InvalidTarget(
            f"xpath: {target.xpath} is not a valid XPath of elements.", details={"effect": "none"}
        )
    details = {"reason": problem, "url": url, "effect": "none"}
    if answer.get("coveredBy"):
        details["coveredBy"] = answer["coveredBy"]
    raise ElementNotFound(_MESSAGES[problem].format(locator=target), details=details)


def document_gone(what: str, *, effect: str) -> ElementNotFound:
    """Return the failure for an element whose document was replaced."""
    return ElementNotFound(
        f"The page navigated to another document {what}.",
        details={"reason": "gone", "effect": effect},
    )


def _located(answer: Mapping[str, Any], documents: int) -> LocatedElement:
    has_point = answer.get("x") is not None
    return LocatedElement(
        match=answer["match"],
        point=(float(answer["x"]), float(answer["y"])) if has_point else None,
        way=answer["way"],
        is_secret=answer["isSecret"],
        key=answer["key"],
        url=answer["url"],
        documents=documents,
        node=answer["node"],
    )


def _not_found(
    answer: Mapping[str, Any], locator: ElementLocator | None, purpose: str, tab: Tab
) -> ToolFailed:
    if answer["outcome"] == "bad_selector":
        kind = "a valid XPath" if isinstance(locator, ElementReference) else "a valid CSS selector"
        text = str(locator)
        return InvalidTarget(f"{text[:1].upper()}{text[1:]} is not {kind}.")
    reason = answer["reason"]
    if reason == TWO_ELEMENTS:
        raise names_two_elements(locator)
    details = {
        "reason": reason,
        "locator": locator.model_dump(exclude_none=True, exclude={"node"}) if locator else None,
        "purpose": purpose,
        "candidates": answer["candidates"],
        "url": tab.page.url,
    }
    if answer.get("coveredBy"):
        details["coveredBy"] = answer["coveredBy"]
    template = _MESSAGES.get(reason, _MESSAGES["no_match"])
    message = template.format(locator=locator or "a submit button")
    return ElementNotFound(message, details=details)
