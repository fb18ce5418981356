"""Synthetic input for when the browser provides no real input: events dispatched by a page script.

See page/synthetic_input.js. Pages can distinguish these events from a person's.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from runners.browser.errors import ContextLost
from runners.browser.interaction.input_device import DocumentCheck
from runners.browser.interaction.locator import run_command
from runners.browser.session.tab import Tab

COMMAND_SECONDS = 10.0  # an upper limit; the interactor has its own, shorter time


@dataclass(frozen=True, slots=True)
class DomInput:
    """Acts on the element that was located last; a document in which none was located ignores it.

    The document check is therefore not needed.
    """

    tab: Tab

    async def click(self, x: float, y: float, is_current: DocumentCheck) -> None:
        """Click the element."""
        await self._run("domClick")

    async def type_text(self, text: str, is_current: DocumentCheck) -> None:
        """Set the text of the field."""
        await self._run("domType", text)

    async def press_key(self, key: str, is_current: DocumentCheck) -> None:
        """Enter: submit the field's form. Delete: empty the field."""
        if key == "Enter":
            await self._run("domEnter")
        else:
            await self._run("domType", "")

    async def _run(self, command: str, args: object = None) -> None:
        with contextlib.suppress(ContextLost):  # the input started a navigation
            await run_command(self.tab, command, args, seconds=COMMAND_SECONDS)
