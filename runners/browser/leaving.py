"""How what belongs to a session ends with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Protocol

from runners.browser.failures import browser_errors

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 5.0


class Belonging(Protocol):
    """Something that a tool made for later calls in the same session."""

    async def close(self) -> None:
        """End it; it raises nothing, and is called once."""
        ...


async def ended(closing: Awaitable[None]) -> None:
    """Wait for a close; what does not close in time goes with its context or its browser."""
    try:
        await asyncio.wait_for(closing, CLOSE_SECONDS)
    except browser_errors() as error:
        logger.debug("closing ended with %s", type(error).__name__)
