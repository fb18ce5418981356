"""Drag an element and drop it, as a person does with the mouse (page/drag.js).

Pages implement dragging in two ways. With HTML drag and drop, the browser turns the movement into
drag events, which are sent over CDP as such. Otherwise the page follows the pointer itself.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runners.browser.errors import ContextLost
from runners.browser.input.cdp_input import CdpInput
from runners.browser.input.checks import (
    INPUT_SECONDS,
    OUTSIDE,
    DocumentCheck,
    NavigatedAway,
    PressMissed,
    require_current_document,
)
from runners.browser.input.interactor import (
    MAX_MISSES,
    Interactor,
    effect_unknown,
    keeps_moving,
)
from runners.browser.input.locator import document_gone, require_found
from runners.browser.parameters import ElementReference
from runners.errors import ElementNotFound, ToolFailed

DragData = Mapping[str, Any]  # what the page drags, as CDP describes it
INTERCEPT_SECONDS = 2.0
Offset = dict[str, int]  # dx and dy, in CSS pixels
FIRST_PIXELS = (3.0, 8.0)  # a movement of a few pixels starts a drag
STEPS = 8
_DROP_MESSAGES = {
    "gone": "The element to drop on disappeared.",
    "other_origin": "A frame of another origin is where to drop, which gets no input.",
}
NOT_DROPPED = "The page did not accept the drop there."


async def drag(
    interactor: Interactor, source: ElementReference, to: ElementReference | Offset
) -> tuple[None, list[str]]:
    """Drag an element onto another one, or by an offset; return warnings.

    Raises:
        ElementNotFound, InvalidTarget, NavigationTimeout, PageCrashed: details.effect is `none`, or
            `unknown` if the element may have been moved.
    """
    device = interactor.device
    offset = None if isinstance(to, ElementReference) else to
    for _ in range(MAX_MISSES):
        try:
            if isinstance(to, ElementReference):
                reference = interactor.resolved(to).model_dump()
                found = await interactor.run("dragDestination", reference)
                require_found(found, to, interactor.tab.page.url)
                interactor.keep(to, found["node"])
            element = await interactor.locate(source, "clickable", will_click=True)
            await interactor.run("watchDrag", {"isByMouse": isinstance(device, CdpInput)})
        except ContextLost:
            continue
        is_current = interactor.document_check(element)
        drag = PageDrag(interactor, element.point or (0.0, 0.0), offset)
        by = drag.by_cdp(device, is_current) if isinstance(device, CdpInput) else drag.by_script()
        try:
            with effect_unknown():
                is_made = await interactor.tab.perform(
                    by, seconds=interactor.seconds_left(INPUT_SECONDS)
                )
        except NavigatedAway as away:
            if away.has_started:
                raise document_gone("during the dragging", effect="unknown") from None
            await interactor.wait_for_next_document()
            continue
        if is_made:
            return None, await drag.warnings()
    raise keeps_moving(element)


@dataclass(frozen=True, slots=True)
class PageDrag:
    """One attempt to drag the element that was located last.

    Attributes:
        start: where the mouse takes it, in CSS pixels of the viewport.
        offset: how far to drag it; None: to the destination that was found last.
    """

    interactor: Interactor
    start: tuple[float, float]
    offset: Offset | None

    async def by_cdp(self, device: CdpInput, is_current: DocumentCheck) -> bool:
        """Drag with the mouse; return false if it would have taken another element."""
        pressing = self.interactor.press_at(self.start, is_current)
        async with device.intercepted_drags() as intercepted:
            try:
                await device.press(*self.start, pressing)
            except PressMissed as missed:
                await self.interactor.require_missed(pressing, missed)
                return False
            try:
                for pixels in FIRST_PIXELS:
                    await device.move_pressed(self.start[0] + pixels, self.start[1] + pixels)
                data = await self._drag_data(intercepted)
                end = await self._end()
                require_current_document(is_current, has_started=True)
            except BaseException:  # also where the action's time is over
                with contextlib.suppress(ToolFailed):
                    if is_current():
                        await device.release_button(*OUTSIDE)
                raise
            if data is None:
                await self._move_and_release(device, end)
            else:
                for kind in ("dragEnter", "dragOver", "dragOver", "drop"):
                    await device.drag_data(kind, *end, data)
        return True

    async def _drag_data(self, intercepted: asyncio.Future[DragData]) -> DragData | None:
        """Return what the page drags with HTML drag and drop, or None if it follows the pointer."""
        if not (await self._run("htmlDrag"))["isStarted"]:
            return None
        try:
            return await asyncio.wait_for(intercepted, INTERCEPT_SECONDS)
        except TimeoutError:
            return None

    async def _move_and_release(self, device: CdpInput, end: tuple[float, float]) -> None:
        (from_x, from_y), (to_x, to_y) = self.start, end
        for step in range(1, STEPS + 1):
            share = step / STEPS
            x, y = from_x + (to_x - from_x) * share, from_y + (to_y - from_y) * share
            await device.move_pressed(x, y)
        await device.move_pressed(to_x, to_y)
        await device.release_button(to_x, to_y)

    async def by_script(self) -> bool:
        """Drag with synthetic events; returns true."""
        device = self.interactor.device
        if not isinstance(device, CdpInput):
            self._require_destination(await device.drag(self.offset), effect="none")
        return True

    async def warnings(self) -> list[str]:
        """Return a warning if the page uses HTML drag and drop and did not accept the drop."""
        try:
            await self.interactor.run("clickOutcome")
            outcome = await self.interactor.run("dragOutcome")
        except ContextLost:
            return []
        return [NOT_DROPPED] if outcome["isHtmlDrag"] and not outcome["isDropped"] else []

    async def _end(self) -> tuple[float, float]:
        """Return the point where to drop, in view; no frame of another origin is there."""
        by_offset = None
        if self.offset is not None:
            x, y = self.start[0] + self.offset["dx"], self.start[1] + self.offset["dy"]
            by_offset = {"x": x, "y": y}
        point = await self._run("dropPoint", by_offset)
        self._require_destination(point, effect="unknown")
        return point["x"], point["y"]

    async def _run(self, command: str, args: object = None) -> dict[str, Any]:
        """Run a command while the button is pressed."""
        try:
            return await self.interactor.run(command, args)
        except ContextLost:
            raise NavigatedAway(has_started=True) from None

    def _require_destination(self, answer: dict[str, Any], *, effect: str) -> None:
        if "problem" in answer:
            raise ElementNotFound(
                _DROP_MESSAGES[answer["problem"]],
                details={"reason": answer["problem"], "effect": effect},
            )
