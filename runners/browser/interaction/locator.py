"""Find the element that a locator means, wait until it can be used, and say what was taken.

The looking is done in the page (page/locate.js, page/aim.js); here it is asked, again when the
page goes on to another document meanwhile, and what it did not find becomes a failure that names
the best candidates.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runners.browser.errors import ContextLost
from runners.browser.parameters import ElementReference, Locator, Purpose
from runners.browser.session.tab import Tab
from runners.errors import ElementNotFound, InvalidTarget, NavigationTimeout, ToolFailed

ElementLocator = Locator | ElementReference
ANSWER_SECONDS = 6.0  # for the page's answer beyond the time that it may look
LOST_SECONDS = 1.0  # for the answer of a document after which another one came: it may get lost
MAX_DOCUMENTS = 8

_WHY = {
    "hidden": "What fits {meant} is hidden.",
    "disabled": "What fits {meant} is disabled.",
    "readonly": "The field that fits {meant} takes no input.",
    "file": "The field that fits {meant} takes files, which cannot be given.",
    "not_a_field": "What fits {meant} is no field.",
    "covered": "Something else lies over what fits {meant}.",
    "moving": "What fits {meant} does not hold still.",
    "outside": "What fits {meant} cannot be scrolled into view.",
    "gone": "What had {meant} is not on the page any more; index the page again.",
    "no_form": "There is no form on the page whose submit button could be pressed.",
}


@dataclass(frozen=True, slots=True)
class LocatedElement:
    """An element that is in view and can be used.

    Attributes:
        match: what was taken: type, label, score 0..1, `by` which property, the words that
            `matched`, and how many candidates `equals` it in score (the first in the document was
            taken).
        point: where to touch it, in CSS pixels of the viewport; None where nobody will.
        way: how a value gets into it: text, rich, set, choice, toggle, radio or none.
        key: the key to press in it instead of touching it.
        url, documents: of the document that it is in, and how many the tab had shown by then.
    """

    match: Mapping[str, Any]
    point: tuple[float, float] | None
    way: str
    is_secret: bool
    key: str
    url: str
    documents: int


async def ask(tab: Tab, command: str, args: object = None, *, seconds: float) -> dict[str, Any]:
    """Have the page do one of its deeds (page/enter.js) and return its answer.

    Raises:
        ContextLost: The page went on to another document meanwhile.
        NavigationTimeout: The page gave no answer in time: its script hangs.
        PageCrashed: The page is lost.
    """
    end, documents = time.monotonic() + seconds, tab.documents

    def left() -> float:
        nonlocal end
        if tab.documents != documents:
            end = min(end, tab.shown_since + LOST_SECONDS)
        return end - time.monotonic()

    try:
        text = await tab.act({"command": command, "args": args}, left)
    except TimeoutError:
        if tab.documents != documents:
            raise ContextLost("the page went on, and the answer with it") from None
        raise NavigationTimeout(
            "The page did not answer: a script of it hangs.", details={"url": tab.page.url}
        ) from None
    answer: dict[str, Any] = json.loads(text)
    if "isStale" in answer:
        raise ContextLost("the element that was aimed at was in the document before")
    return answer


async def aim(
    tab: Tab,
    locator: ElementLocator | None,
    purpose: Purpose,
    *,
    until: float,
    will_press: bool = False,
    answer_by: float = math.inf,
) -> LocatedElement:
    """Wait until an element that fits is there and can be used, at most until `until`
    (`time.monotonic()` seconds); without a locator, until there is a form to submit.

    `will_press`: a press of the mouse comes next; it will not reach any other element. A page that
    has not answered by `answer_by` hangs.

    Raises:
        ElementNotFound: details has reason and candidates, the best ones first.
        InvalidTarget: The selector is no CSS selector.
        NavigationTimeout, PageCrashed: as `ask` says.
    """
    for _ in range(MAX_DOCUMENTS):
        left = max(0.0, until - time.monotonic())
        request = {
            "locator": locator.model_dump() if locator else None,
            "purpose": purpose,
            "timeoutMs": round(left * 1000),
            "isGuarded": will_press,
        }
        try:
            documents = tab.documents
            seconds = min(left + ANSWER_SECONDS, answer_by - time.monotonic())
            answer = await ask(tab, "aim", request, seconds=seconds)
        except ContextLost:
            continue
        if answer["outcome"] != "ready":
            raise _not_found(answer, locator, purpose, tab)
        return _aimed(answer, documents)
    raise NavigationTimeout(
        "The page keeps going on to another document.", details={"url": tab.page.url}
    )


def _aimed(answer: Mapping[str, Any], documents: int) -> LocatedElement:
    has_point = answer.get("x") is not None
    return LocatedElement(
        match=answer["match"],
        point=(float(answer["x"]), float(answer["y"])) if has_point else None,
        way=answer["way"],
        is_secret=answer["isSecret"],
        key=answer["presses"],
        url=answer["url"],
        documents=documents,
    )


def _not_found(
    answer: Mapping[str, Any], locator: ElementLocator | None, purpose: Purpose, tab: Tab
) -> ToolFailed:
    if answer["outcome"] == "bad_selector":
        language = (
            "an XPath of elements" if isinstance(locator, ElementReference) else "a CSS selector"
        )
        return InvalidTarget(f"{locator} is not {language}.".capitalize())
    reason = answer["reason"]
    meant = str(locator) if locator else "a submit button"
    details = {
        "reason": reason,
        "locator": locator.model_dump(exclude_none=True) if locator else None,
        "purpose": purpose,
        "candidates": answer["candidates"],
        "url": tab.page.url,
    }
    if answer.get("coveredBy"):
        details["coveredBy"] = answer["coveredBy"]
    message = _WHY.get(reason, "Nothing on the page fits {meant}.").format(meant=meant)
    return ElementNotFound(message, details=details)
