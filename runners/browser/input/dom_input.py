"""Synthetic input for when the browser provides no real input: events dispatched by a page script.

See page/synthetic_input.js. Pages can distinguish these events from a person's.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from runners.actions.errors import CdpUnavailable
from runners.browser.errors import ContextLost
from runners.browser.input.checks import DocumentCheck
from runners.browser.input.keys import SHIFT, key_of
from runners.browser.input.press import PageKeys, PagePress
from runners.browser.session.tab import Tab

BY_SCRIPT = frozenset({"Escape", "Backspace", "Delete"})  # and Enter, Space and characters
COMMAND_SECONDS = 10.0  # an upper limit; the interactor has its own, shorter time


@dataclass(frozen=True, slots=True)
class DomInput:
    """Acts on the element that was located last; a document in which none was located ignores it.

    The document check is therefore not needed.
    """

    tab: Tab

    async def click(self, x: float, y: float, check: PagePress) -> None:
        """Click the element."""
        await self._run("domClick")

    async def type_text(self, text: str, check: PageKeys) -> None:
        """Set the text of the field."""
        await self._run("domType", text)

    async def press_key(self, key: str, check: PageKeys) -> None:
        """Enter: submit the field's form. Delete: empty the field."""
        if key == "Enter":
            await self._run("domEnter")
        else:
            await self._run("domType", "")

    async def move(self, x: float, y: float, is_current: DocumentCheck) -> None:
        """Move the mouse over the element, for the page's listeners; styles do not change."""
        await self._run("domHover")

    async def press_listened_key(self, name: str) -> None:
        """Press a key in the element, for the page's listeners and with the key's own effect.

        Raises:
            CdpUnavailable: A script cannot have the effect of this key; nothing was done.
        """
        key = key_of(name)
        if key.get("modifiers", 0) & ~SHIFT or not ("text" in key or key["key"] in BY_SCRIPT):
            raise CdpUnavailable(
                f"Real input was not available, and a script cannot press {name}.",
                details={"effect": "none"},
            )
        given = {"key": key["key"], "code": key["code"], "keyCode": key["windowsVirtualKeyCode"]}
        await self._run("domKey", {**given, "text": key.get("text", "")})

    async def drag(self, offset: dict[str, int] | None) -> dict[str, Any]:
        """Drag the element to the destination that was found last, or by an offset in pixels."""
        return await self._run("domDrag", offset)

    async def _run(self, command: str, args: object = None) -> dict[str, Any]:
        with contextlib.suppress(ContextLost):  # the input started a navigation
            return await self.tab.run_command(command, args, seconds=COMMAND_SECONDS)
        return {}
