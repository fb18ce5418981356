"""What a hand does on a page: press an element, put a value into a field; by real input events, so
that the page's own listeners see what they would see of a person.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from runners.browser.errors import ContextLost
from runners.browser.interaction.input_device import (
    DocumentCheck,
    InputDevice,
    NavigatedAway,
    PlaywrightInput,
)
from runners.browser.interaction.locator import ElementLocator, LocatedElement, aim, ask
from runners.browser.interaction.page_reader import wait_for_next_document
from runners.browser.parameters import Purpose
from runners.browser.session.tab import Tab
from runners.errors import ElementNotFound, InvalidTarget, NavigationTimeout, PageCrashed

PRESS_SECONDS = 10.0
TYPE_SECONDS = 30.0
LEAVING_SECONDS = 0.5
MAX_MISSES = 5
MASK = "***"


@dataclass(frozen=True, slots=True)
class Interactor:
    """Works on one tab until a `time.monotonic()` value; `patience` is when looking ends.

    `fingers` are Playwright's mouse and keyboard unless others are given. `permit` raises where a
    document of this address is not to be touched; it is asked once the element is known, and again
    when the mouse is over it. No document but the one that the element was found in is touched.
    """

    tab: Tab
    locate_until: float
    deadline: float
    device: InputDevice | None = None
    check_url: Callable[[str], None] = lambda url: None

    async def press(self, locator: ElementLocator | None) -> LocatedElement:
        """Press the element once, or the submit button of the form that was filled last.

        Raises:
            ElementNotFound, InvalidTarget: Nothing was pressed.
            NavigationTimeout, PageCrashed: details.effect tells what the press did: `none` or
                `unknown`.
        """
        for _ in range(MAX_MISSES):
            aimed = await self._aim(locator, "clickable", will_press=True)
            if aimed.key:
                with _effect_unknown():
                    await self._ask("focus")
                await self.press_key(aimed.key, aimed)
                return aimed
            met = await self._press_at(aimed)
            if met == "left":
                await self._await_next_document()
            elif met != "missed":
                return aimed
        raise _moves(aimed)

    async def fill(
        self, locator: ElementLocator, value: str, *, is_secret: bool = False
    ) -> tuple[LocatedElement, list[str]]:
        """Put the value into the field in place of what it has; return what it was put into, and
        warnings.

        Raises:
            ElementNotFound: There is no such field, or no such option in it (details.options).
            InvalidTarget: The field does not take this value.
            NavigationTimeout, PageCrashed: as the page does; details.effect as for `press`.
        """
        aimed = await self._aim(locator, "field")
        try:
            if aimed.way in ("toggle", "radio"):
                return aimed, await self._switch(aimed, value)
            if aimed.way == "choice":
                _chosen(await self._ask("choose", value), aimed)
            elif aimed.way == "set":
                await self._set(aimed, value)
            elif aimed.way in ("text", "rich"):
                return aimed, await self._write(aimed, value, is_secret=is_secret)
            else:
                raise ElementNotFound(
                    "What fits takes no text.",
                    details={"reason": "not_a_field", "candidates": [dict(aimed.match)]},
                )
        except ContextLost:
            raise _went_on("unknown") from None
        return aimed, []

    async def press_key(self, key: str, aimed: LocatedElement) -> None:
        """Press a key in the field that has the focus; the field that was filled last has it.

        Raises:
            NavigationTimeout, PageCrashed: as `press`.
        """
        with _effect_unknown():
            striking = self._fingers.press_key(key, self._stays(aimed))
            try:
                await self.tab.perform(striking, seconds=self._left(PRESS_SECONDS))
            except NavigatedAway:
                raise _went_on("unknown") from None

    async def _aim(
        self, locator: ElementLocator | None, purpose: Purpose, *, will_press: bool = False
    ) -> LocatedElement:
        try:
            aimed = await aim(
                self.tab,
                locator,
                purpose,
                until=self.locate_until,
                will_press=will_press,
                answer_by=self.deadline,
            )
        except (ElementNotFound, InvalidTarget, NavigationTimeout, PageCrashed) as failure:
            failure.details.setdefault("effect", "none")
            raise
        self.check_url(aimed.url)
        return aimed

    def _stays(self, aimed: LocatedElement) -> DocumentCheck:
        """Return what tells whether the page still shows, and keeps, the document of an element."""

        def stays() -> bool:
            self.check_url(aimed.url)
            return self.tab.documents == aimed.documents and not self.tab.is_leaving

        return stays

    async def _press_at(self, aimed: LocatedElement) -> str:
        """Press and let go; return `hit`, `unseen`, or where nothing was pressed `missed` or, for
        the page goes on to another document, `left`.
        """
        x, y = aimed.point or (0.0, 0.0)
        with _effect_unknown():
            pressing = self._fingers.press(x, y, self._stays(aimed))
            try:
                await self.tab.perform(pressing, seconds=self._left(PRESS_SECONDS))
            except NavigatedAway:
                return "left"
            return await self._what_was_hit()

    async def _await_next_document(self) -> None:
        try:
            await wait_for_next_document(self.tab, self.locate_until, grace=0.0)
        except (NavigationTimeout, PageCrashed) as failure:
            failure.details["effect"] = "none"
            raise

    async def _what_was_hit(self) -> str:
        """Return what a press met; one that sends the page on met its element.

        A page on its way to one that does not come may answer nothing any more.
        """
        is_leaving = self.tab.is_leaving
        left = self._left(LEAVING_SECONDS if is_leaving else PRESS_SECONDS)
        try:
            return str((await ask(self.tab, "pressed", seconds=left))["press"])
        except ContextLost:
            return "hit"
        except NavigationTimeout:
            if self.tab.is_leaving:
                return "hit"
            raise

    async def _switch(self, aimed: LocatedElement, value: str) -> list[str]:
        wanted = await self._ask("mustPress", value)
        _chosen(wanted, aimed)
        if not wanted["press"]:
            return []
        for _ in range(MAX_MISSES):
            place = await self._ask("reachTarget")
            if place.get("reason"):
                raise ElementNotFound(
                    "The box cannot be pressed: something else lies over it.",
                    details={**place, "candidates": [dict(aimed.match)]},
                )
            met = await self._press_at(replace(aimed, point=(place["x"], place["y"])))
            if met == "left":
                raise _went_on("none")
            if met != "missed":
                return await self._what_became(aimed, wanted["was"])
        raise _moves(aimed)

    async def _what_became(self, aimed: LocatedElement, before: str) -> list[str]:
        """Return a warning where a box that was pressed is what it was before."""
        try:
            is_same = (await self._ask("shownValue"))["value"] == before
        except (ContextLost, NavigationTimeout):
            return []
        return [f"“{aimed.match['label']}” was pressed, and stayed as it was."] if is_same else []

    async def _set(self, aimed: LocatedElement, value: str) -> None:
        shown = (await self._ask("setValue", value))["value"]
        if value and not shown:
            raise InvalidTarget(
                f"The {aimed.match['type']} field “{aimed.match['label']}” does not take this"
                " value; dates are written YYYY-MM-DD, times HH:MM, colours #RRGGBB.",
                details={"field": aimed.match["label"], "type": aimed.match["type"]},
            )

    async def _write(self, aimed: LocatedElement, value: str, *, is_secret: bool) -> list[str]:
        try:
            await self._ask("focus")
        except ContextLost:
            raise _went_on("none") from None
        stays, device = self._stays(aimed), self._fingers
        writing = device.write(value, stays) if value else device.press_key("Delete", stays)
        try:
            await self.tab.perform(writing, seconds=self._left(TYPE_SECONDS))
        except TimeoutError:
            raise _hangs(effect="unknown") from None
        except NavigatedAway as left:
            raise _went_on("unknown" if left.begun else "none") from None
        shown = (await self._ask("shownValue"))["value"]
        return self._differences(aimed, value, shown, is_secret=is_secret or aimed.is_secret)

    @staticmethod
    def _differences(
        aimed: LocatedElement, value: str, shown: str, *, is_secret: bool
    ) -> list[str]:
        if "".join(shown.split()) == "".join(value.split()):
            return []
        label = aimed.match["label"]
        if value and not shown.strip():
            raise InvalidTarget(
                f"The field “{label}” does not take this value: it stayed empty.",
                details={"field": label, "type": aimed.match["type"]},
            )
        told = MASK if is_secret else shown[:100]
        return [f"The field “{label}” made something else of the value: {told}"]

    @property
    def _fingers(self) -> InputDevice:
        return self.device or PlaywrightInput(self.tab.page)

    async def _ask(self, deed: str, given: object = None) -> dict[str, Any]:
        return await ask(self.tab, deed, given, seconds=self._left(PRESS_SECONDS))

    def _left(self, at_most: float) -> float:
        return max(0.1, min(at_most, self.deadline - time.monotonic()))


def _chosen(answer: dict[str, Any], aimed: LocatedElement) -> None:
    """Raise what an answer without the wanted option means."""
    if "missing" not in answer:
        return
    raise ElementNotFound(
        f"The field “{aimed.match['label']}” has no such option.",
        details={
            "reason": "no_such_option",
            "field": aimed.match["label"],
            "options": answer["missing"],
            "candidates": [dict(aimed.match)],
        },
    )


def _moves(aimed: LocatedElement) -> ElementNotFound:
    return ElementNotFound(
        "The element moved away under the mouse each time.",
        details={"reason": "moving", "candidates": [dict(aimed.match)], "effect": "none"},
    )


def _hangs(*, effect: str) -> NavigationTimeout:
    return NavigationTimeout(
        "The page did not answer: a script of it hangs.", details={"effect": effect}
    )


def _went_on(effect: str) -> PageCrashed:
    return PageCrashed(
        "The page went on to another document while its field was filled.",
        details={"effect": effect},
    )


@contextlib.contextmanager
def _effect_unknown() -> Any:
    """Say of whatever goes wrong inside that the press may have had its effect."""
    try:
        yield
    except TimeoutError:
        raise _hangs(effect="unknown") from None
    except (NavigationTimeout, PageCrashed) as failure:
        failure.details["effect"] = "unknown"
        raise
