"""Hover over an element, press keys in it, and select options of a list."""

from __future__ import annotations

import asyncio
import time

from runners.browser.errors import ContextLost
from runners.browser.input.cdp_input import CdpInput
from runners.browser.input.checks import INPUT_SECONDS, NavigatedAway
from runners.browser.input.dom_input import DomInput
from runners.browser.input.interactor import (
    MAX_MISSES,
    Interactor,
    effect_unknown,
    keeps_moving,
    require_option,
)
from runners.browser.input.locator import LocatedElement, document_gone, require_found
from runners.browser.parameters import ElementReference
from runners.errors import InvalidTarget

RETRY_SECONDS = 0.1


async def hover(interactor: Interactor, target: ElementReference) -> tuple[None, list[str]]:
    """Move the mouse over an element, once nothing covers it.

    Raises:
        ElementNotFound, InvalidTarget: The mouse was not moved, or the element moved away.
        NavigationTimeout, PageCrashed: As `Interactor.click`.
    """
    device = interactor.device
    for _ in range(MAX_MISSES):
        element = await _reach(interactor, target)
        x, y = element.point or (0.0, 0.0)
        try:
            with effect_unknown():
                moving = device.move(x, y, interactor.document_check(element))
                seconds = interactor.seconds_left(INPUT_SECONDS)
                await interactor.tab.perform(moving, seconds=seconds)
                if isinstance(device, DomInput) or (await interactor.run("isHovered"))["isHovered"]:
                    return None, []
        except NavigatedAway:
            await interactor.wait_for_next_document()
        except ContextLost:  # the page navigates because of the mouse
            return None, []
    raise keeps_moving(element)


async def _reach(interactor: Interactor, target: ElementReference) -> LocatedElement:
    """Return the element and its point, once nothing covers it."""
    while True:
        element = await interactor.locate(target, "clickable")
        if element.point is not None:
            return element
        if time.monotonic() >= interactor.locate_until:
            point = await interactor.run("hoverPoint")
            if "reason" in point:
                require_found({**point, "problem": point["reason"]}, target, element.url)
        await asyncio.sleep(RETRY_SECONDS)


async def press_keys(
    interactor: Interactor, target: ElementReference | None, key: str, times: int
) -> tuple[str, list[str]]:
    """Press a key in an element, or where the focus is; return the name of the element that has the
    focus, and warnings.

    Raises:
        ElementNotFound, InvalidTarget: No key was pressed.
        CdpUnavailable: No key was pressed: only real input can press it.
        NavigationTimeout, PageCrashed: As `Interactor.click`.
    """
    device, tab = interactor.device, interactor.tab
    documents = tab.documents
    await tab.frame_input.close()
    try:
        reference = interactor.resolved(target).model_dump() if target else None
        answer = await interactor.run("focusForKeys", reference)
    except ContextLost:
        raise document_gone("before the key was pressed", effect="none") from None
    require_found(answer, target, tab.page.url)
    interactor.keep(target, answer["node"])
    interactor.check_url(answer["url"])
    keys = interactor.keys(interactor.document_check_for(answer["url"], documents))
    for pressed in range(times):
        pressing = (
            device.press_key(key, keys)
            if isinstance(device, CdpInput)
            else device.press_listened_key(key)
        )
        try:
            with effect_unknown():
                await tab.perform(pressing, seconds=interactor.seconds_left(INPUT_SECONDS))
        except NavigatedAway:
            if not pressed:
                raise document_gone("before the key was pressed", effect="none") from None
            return answer["focus"], [f"The page navigated after {pressed} of {times} presses."]
    return answer["focus"], []


async def select_options(
    interactor: Interactor, target: ElementReference, options: list[str]
) -> tuple[list[str], list[str]]:
    """Select options of a list; return the labels of all that are selected then, and no warnings.

    Raises:
        ElementNotFound: There is no such list, or no such option in it (details.options).
        InvalidTarget: The list takes exactly one option.
        NavigationTimeout, PageCrashed: As `Interactor.click`.
    """
    field = await interactor.locate(target, "field")
    try:
        with effect_unknown():
            answer = await interactor.run("selectOptions", options)
    except ContextLost:
        raise document_gone("while its options were selected", effect="unknown") from None
    problem = answer.get("problem")
    if problem:
        message = f"The list “{field.match['label']}” takes exactly one option."
        if problem == "not_a_select":
            message = (
                "The element is not a list of options that can be selected: click it, then click"
                " the option that it shows."
            )
        raise InvalidTarget(message, details={"reason": problem, "effect": "none"})
    require_option(answer, field)
    return answer["selected"], []
