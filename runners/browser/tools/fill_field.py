"""The tool `fill_field`: put a value into a field of the run's page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictStr, model_validator

from runners.browser.interaction.run_tab import interactor_for, lease_run_tab
from runners.browser.parameters import LOCATE_MS, LocateTimeout, Locator
from runners.errors import InvalidTarget
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool

MASK = "***"
SHOWN_LENGTH = 100


class FillField(Closed):
    """Which field, and what to put there."""

    locator: Locator
    value: StrictStr | None = Field(
        default=None,
        max_length=50_000,
        description="Text to type; the label of an option; true or false for a box; YYYY-MM-DD for"
        " a date.",
    )
    secret: StrictStr | None = Field(
        default=None, description="Instead of value: the name of a secret input of the run."
    )
    timeout_ms: LocateTimeout = Field(default=LOCATE_MS, alias="timeoutMs")

    @model_validator(mode="after")
    def _has_one_value(self) -> FillField:
        if (self.value is None) == (self.secret is None):
            raise ValueError("give either value or secret")
        return self


@tool("fill_field", kind="browser", effect=Effect.AT_LEAST_ONCE, timeout_ms=100_000)
async def fill_field(args: FillField, ctx: ToolContext) -> Mapping[str, Any]:
    """Fill a field of the run's page by real typing: text, options, boxes, dates, rich editors.

    Returns match {type, label, score, by, matched, equals}, the value as put there ("***" where
    the field or the value is secret), and warnings where the page made something else of it.
    """
    value, is_secret = _value_of(args, ctx)
    async with lease_run_tab(ctx) as tab:
        hand = interactor_for(tab, ctx, timeout_ms=args.timeout_ms)
        aimed, warnings = await hand.fill(args.locator, value, is_secret=is_secret)
    shown = MASK if is_secret or aimed.is_secret else value[:SHOWN_LENGTH]
    return {"match": aimed.match, "value": shown, "warnings": warnings}


def _value_of(args: FillField, ctx: ToolContext) -> tuple[str, bool]:
    if args.secret is None:
        return args.value or "", False
    if args.secret not in ctx.secrets:
        raise InvalidTarget(f"The run has no secret input {args.secret[:64]}.")
    return ctx.secrets[args.secret], True
