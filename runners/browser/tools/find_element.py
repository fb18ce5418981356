"""The tool `find_element`: find the element of the run's page that a locator describes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictBool

from runners.browser.input.locator import locate_element
from runners.browser.parameters import LOCATE_MS, LocateTimeout, Locator, Purpose
from runners.browser.tabs.run_tab import lease_run_tab
from runners.errors import ElementNotFound
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool


class FindElement(Closed):
    """What to look for."""

    locator: Locator
    purpose: Purpose = Field(
        default="any", description="field: an element to fill; clickable: an element to click."
    )
    required: StrictBool = Field(
        default=True, description="False: return match null if no element matches."
    )
    timeout_ms: LocateTimeout = Field(default=LOCATE_MS, alias="timeoutMs")


@tool("find_element", kind="browser", effect=Effect.READ, timeout_ms=70_000)
async def find_element(args: FindElement, ctx: ToolContext) -> Mapping[str, Any]:
    """Find an element of the run's page by selector or by words, without touching it.

    Returns match {type, label, score, by, matched, equals} and secret: whether it is a field whose
    value is masked. Fails with ELEMENT_NOT_FOUND and the best candidates in details.
    """
    async with lease_run_tab(ctx) as tab:
        until = time.monotonic() + ctx.seconds_left(args.timeout_ms / 1000)
        try:
            element = await locate_element(tab, args.locator, args.purpose, until=until)
        except ElementNotFound as missing:
            if args.required:
                raise
            details = {key: missing.details[key] for key in ("reason", "candidates")}
            return {"match": None, "secret": False, **details}
        return {"match": element.match, "secret": element.is_secret}
