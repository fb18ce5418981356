"""The tool `find_element`: say which element of the run's page a locator means."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictBool

from runners.browser.interaction.locator import aim
from runners.browser.interaction.run_tab import lease_run_tab
from runners.browser.parameters import LOCATE_MS, LocateTimeout, Locator, Purpose
from runners.errors import ElementNotFound
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool


class FindElement(Closed):
    """What to look for."""

    locator: Locator
    purpose: Purpose = Field(
        default="any", description="field: something to fill; clickable: something to press."
    )
    required: StrictBool = Field(
        default=True, description="False: answer with match null where nothing fits."
    )
    timeout_ms: LocateTimeout = Field(default=LOCATE_MS, alias="timeoutMs")


@tool("find_element", kind="browser", effect=Effect.READ, timeout_ms=70_000)
async def find_element(args: FindElement, ctx: ToolContext) -> Mapping[str, Any]:
    """Find an element of the run's page by selector or by words, without touching it.

    Returns match {type, label, score, by, matched, equals} and secret: whether it is a field whose
    value is kept out of sight. Fails with ELEMENT_NOT_FOUND and the best candidates in details.
    """
    async with lease_run_tab(ctx) as tab:
        until = time.monotonic() + ctx.seconds_left(args.timeout_ms / 1000)
        try:
            aimed = await aim(tab, args.locator, args.purpose, until=until)
        except ElementNotFound as missing:
            if args.required:
                raise
            told = {key: missing.details[key] for key in ("reason", "candidates")}
            return {"match": None, "secret": False, **told}
        return {"match": aimed.match, "secret": aimed.is_secret}
