"""Failures of page commands that search an element by its reference themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runners.actions.judged import CHANGED
from runners.browser.input.locator import (
    TWO_ELEMENTS,
    element_changed,
    names_two_elements,
)
from runners.browser.parameters import ElementReference
from runners.errors import ElementNotFound, InvalidTarget

_MESSAGES = {
    "no_match": "No element on the page matches {target}.",
    "gone": "The element for {target} is no longer on the page; look at the page again.",
    "not_focusable": "The element for {target} cannot have the focus.",
    "covered": "Another element covers the element for {target}.",
    "moving": "The element for {target} keeps moving.",
    "outside": "The element for {target} cannot be scrolled into view.",
    "other_origin": "The element for {target} is a frame of another origin, which gets no input;"
    " open its address as a page of its own.",
}


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
    raise ElementNotFound(_MESSAGES[problem].format(target=target), details=details)


def document_gone(what: str, *, effect: str) -> ElementNotFound:
    """Return the failure for an element whose document was replaced."""
    return ElementNotFound(
        f"The page navigated to another document {what}.",
        details={"reason": "gone", "effect": effect},
    )
