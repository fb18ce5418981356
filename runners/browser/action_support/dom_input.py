"""What stands in for real input where the browser gives none: events made by a script in the page
(page/stand_in.js). Pages can tell them from a person's.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from runners.browser.errors import ContextLost
from runners.browser.interaction.input_device import DocumentCheck
from runners.browser.interaction.locator import ask
from runners.browser.session.tab import Tab

DEED_SECONDS = 10.0  # at most; a hand has its own, shorter time


@dataclass(frozen=True, slots=True)
class DomInput:
    """Acts on the element that was aimed at last, wherever it is: no other document has one."""

    tab: Tab

    async def press(self, x: float, y: float, stays: DocumentCheck) -> None:
        """Click the element."""
        await self._do("domClick")

    async def write(self, text: str, stays: DocumentCheck) -> None:
        """Put a text into the field."""
        await self._do("domWrite", text)

    async def press_key(self, key: str, stays: DocumentCheck) -> None:
        """Empty the field, or submit what it belongs to."""
        if key == "Enter":
            await self._do("domEnter")
        else:
            await self._do("domWrite", "")

    async def _do(self, deed: str, given: object = None) -> None:
        with contextlib.suppress(ContextLost):  # it led to another document
            await ask(self.tab, deed, given, seconds=DEED_SECONDS)
