"""Click elements and fill fields with real input events, so that a page reacts as to a person."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from runners.actions.judged import CHANGED
from runners.browser.errors import ContextLost
from runners.browser.input.cdp_input import CdpInput
from runners.browser.input.checks import (
    INPUT_SECONDS,
    DocumentCheck,
    NavigatedAway,
    PressMissed,
)
from runners.browser.input.dom_input import DomInput
from runners.browser.input.locator import (
    ElementLocator,
    LocatedElement,
    element_changed,
    locate_element,
)
from runners.browser.input.press import PageKeys, PagePress, not_received, nothing_to_click
from runners.browser.parameters import ElementReference, Purpose
from runners.browser.reading.page_reader import wait_for_next_document
from runners.browser.session.tab import Tab
from runners.errors import ElementNotFound, InvalidTarget, NavigationTimeout, PageCrashed
from runners.tools.base import ExpectedElement, Reference

TYPE_SECONDS = 30.0
MAX_MISSES = 5
MASK = "***"


@dataclass(frozen=True, slots=True)
class Interactor:
    """Clicks and fills elements of one tab. Times are `time.monotonic()` values.

    Input reaches only the document in which the element was located.

    Attributes:
        locate_until: when the search for an element ends.
        deadline: when all work ends.
        check_url: raises if a document of this URL must not receive input; called when the element
            is located, and again before the input.
        nodes: the element of each reference that was resolved. A reference is resolved once: if its
            element is gone, no other one takes its place.
        expected: the element that the call was judged by.
    """

    tab: Tab
    locate_until: float
    deadline: float
    device: CdpInput | DomInput
    check_url: Callable[[str], None] = lambda url: None
    nodes: dict[Reference, str] = field(default_factory=dict)
    expected: ExpectedElement | None = None

    async def click(
        self, locator: ElementLocator | None, *, submits: bool = False
    ) -> LocatedElement:
        """Click the element once, or without a locator the submit button of the last filled form.

        Args:
            submits: of elements that fit equally well, one that may submit the last filled field.

        Raises:
            ElementNotFound, InvalidTarget: Nothing was clicked.
            NavigationTimeout, PageCrashed: details.effect is `none`, or `unknown` if the click may
                have had an effect.
        """
        for _ in range(MAX_MISSES):
            element = await self.locate(locator, "clickable", will_click=True, will_submit=submits)
            if element.key:
                with effect_unknown():
                    await self.run("focus")
                await self.press_key(element.key, element)
                return element
            outcome = await self._click_at(element)
            if outcome == "left":
                await self.wait_for_next_document()
            elif outcome != "missed":
                return element
        raise keeps_moving(element)

    async def click_point(self, x: float, y: float) -> None:
        """Click at a point of the viewport, in CSS pixels, whatever is there.

        Raises:
            ElementNotFound: A frame of another origin is there, or what is there keeps changing.
            NavigationTimeout, PageCrashed: As `click`.
        """
        await self.tab.frame_input.close()
        for _ in range(MAX_MISSES):
            await self._expect_at(x, y)
            is_current = self.document_check_for(self.tab.page.url, self.tab.documents)
            outcome = await self._click(self.press_at((x, y), is_current, command="pointReady"))
            if outcome == "left":
                raise _navigated("none")
            if outcome == "hit":
                return
        raise nothing_to_click("moving")

    async def _expect_at(self, x: float, y: float) -> None:
        """Check that the judged element is at a point, and let only that one be clicked."""
        if self.expected is None:
            return
        request = {"node": self.expected.node, "compares": self.expected.compares, "x": x, "y": y}
        try:
            answer = await self.run("expectAt", request)
        except ContextLost:
            raise _moved_away() from None
        if answer.get("problem") == CHANGED:
            raise element_changed("x and y", answer["changed"])
        if "problem" in answer:
            raise _moved_away()

    async def require_unchanged(self, reference: object) -> None:
        """Raise if the judged element is not as it was any more.

        Raises:
            ElementNotFound: details.effect is `unknown`: input of the call came before.
        """
        if self.expected is None or not self.expected.compares:
            return
        if changed := (await self.run("expectedChange"))["changed"]:
            raise element_changed(reference, changed, effect="unknown")

    async def fill(
        self, locator: ElementLocator, value: str, *, is_secret: bool = False
    ) -> tuple[LocatedElement, list[str]]:
        """Replace the value of a field; return the field and warnings.

        Raises:
            ElementNotFound: There is no such field, or no such option in it (details.options).
            InvalidTarget: The field does not accept this value.
            NavigationTimeout, PageCrashed: The page failed; details.effect as for `click`.
        """
        field = await self.locate(locator, "field")
        try:
            if field.way in ("toggle", "radio"):
                return field, await self._toggle(field, value)
            if field.way == "choice":
                with effect_unknown():
                    chosen = await self.run("chooseOption", value)
                require_option(chosen, field)
            elif field.way == "set":
                await self._set(field, value)
            elif field.way in ("text", "rich"):
                return field, await self._type(field, value, is_secret=is_secret)
            else:
                raise ElementNotFound(
                    "The matching element does not accept text.",
                    details={"reason": "not_a_field", "candidates": [dict(field.match)]},
                )
        except ContextLost:
            raise _navigated("unknown") from None
        return field, []

    async def press_key(self, key: str, element: LocatedElement) -> None:
        """Press a key in the focused field, which is the field that was filled last.

        Raises:
            NavigationTimeout, PageCrashed: As `click`.
        """
        with effect_unknown():
            await self.require_unchanged(element.match["label"])
            pressing = self.device.press_key(key, self.keys(self.document_check(element)))
            try:
                await self.tab.perform(pressing, seconds=self.seconds_left(INPUT_SECONDS))
            except NavigatedAway:
                raise _navigated("unknown") from None

    async def locate(
        self,
        locator: ElementLocator | None,
        purpose: Purpose,
        *,
        will_click: bool = False,
        will_submit: bool = False,
    ) -> LocatedElement:
        """Return the element once it is usable; raises as `locate_element`, without any effect."""
        await self.tab.frame_input.close()
        try:
            element = await locate_element(
                self.tab,
                self.resolved(locator) if isinstance(locator, ElementReference) else locator,
                purpose,
                until=self.locate_until,
                will_click=will_click,
                will_submit=will_submit,
                answer_by=self.deadline,
                expected=self.expected,
            )
        except (ElementNotFound, InvalidTarget, NavigationTimeout, PageCrashed) as failure:
            failure.details.setdefault("effect", "none")
            raise
        self.check_url(element.url)
        self.keep(locator, element.node)
        return element

    def resolved(self, reference: ElementReference) -> ElementReference:
        """Return the reference with the element that it named before, if it was resolved."""
        node = self.nodes.get((reference.click_id, reference.xpath))
        expected = self.expected
        compares = expected.compares if expected and node == expected.node else None
        return reference.model_copy(update={"node": node, "compares": compares})

    def keep(self, locator: ElementLocator | None, node: str) -> None:
        """Keep the element that a reference named."""
        if isinstance(locator, ElementReference):
            self.nodes.setdefault((locator.click_id, locator.xpath), node)

    def document_check(self, element: LocatedElement) -> DocumentCheck:
        """Return a function that checks that the page still shows the element's document."""
        return self.document_check_for(element.url, element.documents)

    def document_check_for(self, url: str, documents: int) -> DocumentCheck:
        """Return a function that checks that the page still shows the document of this URL, which
        was the tab's `documents`-th.
        """

        def is_current() -> bool:
            self.check_url(url)
            return self.tab.documents == documents and not self.tab.is_leaving

        return is_current

    async def _click_at(self, element: LocatedElement) -> str:
        """Click at the element's point; return as `_click`."""
        return await self._click(self.press_of(element))

    def press_of(self, element: LocatedElement) -> PagePress:
        """Return a press of the element that was located last."""
        return self.press_at(element.point or (0.0, 0.0), self.document_check(element))

    def press_at(
        self,
        point: tuple[float, float],
        is_current: DocumentCheck,
        *,
        command: Literal["pressReady", "pointReady"] = "pressReady",
    ) -> PagePress:
        """Return a press at a point of the viewport, in CSS pixels."""
        return PagePress(self.tab, *point, is_current, command, self.seconds_left)

    def keys(self, is_current: DocumentCheck) -> PageKeys:
        """Return keys for the element that has the focus."""
        return PageKeys(self.tab, is_current, self.seconds_left)

    async def _click(self, press: PagePress) -> str:
        """Click once and return `hit`.

        If nothing was clicked, it returns `missed`, or `left` if the page navigates away.

        Raises:
            ElementNotFound: The element did not receive the click; details.effect is `unknown`.
        """
        with effect_unknown():
            try:
                clicking = self.device.click(press.x, press.y, press)
                await self.tab.perform(clicking, seconds=self.seconds_left(INPUT_SECONDS))
            except NavigatedAway as away:
                return "hit" if away.has_started else "left"
            except PressMissed as missed:
                await self.require_missed(press, missed)
                return "missed"
            if await press.outcome() == "diverted":
                raise not_received()
        return "hit"

    async def require_missed(self, press: PagePress, missed: PressMissed) -> None:
        """Raise ElementNotFound, with the effect `unknown`, unless the press has hit nothing."""
        if await press.outcome() != "missed" and missed.has_pressed:
            raise not_received()

    async def wait_for_next_document(self) -> None:
        """Wait for the document to which the page navigates; nothing was done before."""
        try:
            await wait_for_next_document(self.tab, self.locate_until, grace=0.0)
        except (NavigationTimeout, PageCrashed) as failure:
            failure.details["effect"] = "none"
            raise

    async def _toggle(self, field: LocatedElement, value: str) -> list[str]:
        toggle = await self.run("needsClick", value)
        require_option(toggle, field)
        if not toggle["needsClick"]:
            return []
        for _ in range(MAX_MISSES):
            point = await self.run("reachTarget")
            if point.get("reason"):
                raise ElementNotFound(
                    "The box cannot be clicked: another element covers it.",
                    details={**point, "candidates": [dict(field.match)]},
                )
            outcome = await self._click_at(replace(field, point=(point["x"], point["y"])))
            if outcome == "left":
                raise _navigated("none")
            if outcome != "missed":
                return await self._unchanged_warning(field, toggle["before"])
        raise keeps_moving(field)

    async def _unchanged_warning(self, field: LocatedElement, before: str) -> list[str]:
        """Return a warning if a click did not change a box."""
        try:
            is_same = (await self.run("shownValue"))["value"] == before
        except (ContextLost, NavigationTimeout):
            return []
        label = field.match["label"]
        return [f"“{label}” was clicked, but its state did not change."] if is_same else []

    async def _set(self, field: LocatedElement, value: str) -> None:
        with effect_unknown():
            shown = (await self.run("setValue", value))["value"]
        if value and not shown:
            raise InvalidTarget(
                f"The {field.match['type']} field “{field.match['label']}” does not accept this"
                " value; dates are written YYYY-MM-DD, times HH:MM, colours #RRGGBB.",
                details={"field": field.match["label"], "type": field.match["type"]},
            )

    async def _type(self, field: LocatedElement, value: str, *, is_secret: bool) -> list[str]:
        try:
            await self.run("focus")
        except ContextLost:
            raise _navigated("none") from None
        keys, device = self.keys(self.document_check(field)), self.device
        typing = device.type_text(value, keys) if value else device.press_key("Delete", keys)
        try:
            await self.tab.perform(typing, seconds=self.seconds_left(TYPE_SECONDS))
        except TimeoutError:
            raise _hangs() from None
        except NavigatedAway as away:
            raise _navigated("unknown" if away.has_started else "none") from None
        shown = (await self.run("shownValue"))["value"]
        return self._differences(field, value, shown, is_secret=is_secret or field.is_secret)

    @staticmethod
    def _differences(
        field: LocatedElement, value: str, shown: str, *, is_secret: bool
    ) -> list[str]:
        if "".join(shown.split()) == "".join(value.split()):
            return []
        label = field.match["label"]
        if value and not shown.strip():
            raise InvalidTarget(
                f"The field “{label}” does not accept this value: it is still empty.",
                details={"field": label, "type": field.match["type"]},
            )
        text = MASK if is_secret else shown[:100]
        return [f"The field “{label}” changed the value to: {text}"]

    async def run(self, command: str, args: object = None) -> dict[str, Any]:
        """Run a command of page/commands.js; raises as `Tab.run_command`."""
        seconds = self.seconds_left(INPUT_SECONDS)
        return await self.tab.run_command(command, args, seconds=seconds)

    def seconds_left(self, at_most: float) -> float:
        """Return the seconds left for work, at most `at_most`."""
        return max(0.1, min(at_most, self.deadline - time.monotonic()))


def require_option(answer: dict[str, Any], field: LocatedElement) -> None:
    """Raise ElementNotFound if the page's answer says that the field has no such option."""
    if "missing" not in answer:
        return
    raise ElementNotFound(
        f"The field “{field.match['label']}” has no such option.",
        details={
            "reason": "no_such_option",
            "field": field.match["label"],
            "options": answer["missing"],
            "candidates": [dict(field.match)],
        },
    )


def keeps_moving(element: LocatedElement) -> ElementNotFound:
    """Return the failure for an element that moved whenever it was to be reached."""
    return ElementNotFound(
        "The element moved each time that the mouse reached it.",
        details={"reason": "moving", "candidates": [dict(element.match)], "effect": "none"},
    )


def _moved_away() -> ElementNotFound:
    return ElementNotFound(
        "The element that the click was judged by is not at this point any more.",
        details={"reason": "moving", "effect": "none"},
    )


def _hangs() -> NavigationTimeout:
    return NavigationTimeout(
        "The page did not answer: its script hangs.", details={"effect": "unknown"}
    )


def _navigated(effect: str) -> PageCrashed:
    return PageCrashed(
        "The page navigated to another document while its field was filled.",
        details={"effect": effect},
    )


@contextlib.contextmanager
def effect_unknown() -> Any:
    """Set details.effect of failures inside to `unknown`: the input may have had an effect."""
    try:
        yield
    except TimeoutError:
        raise _hangs() from None
    except (NavigationTimeout, PageCrashed) as failure:
        failure.details["effect"] = "unknown"
        raise
