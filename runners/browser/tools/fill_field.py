"""The tool `fill_field`: set the value of a field of the run's page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictStr, model_validator

from runners.browser.parameters import LOCATE_MS, LocateTimeout, Locator
from runners.browser.tabs.run_tab import interactor_for, lease_run_tab
from runners.errors import InvalidTarget
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool

MASK = "***"
MAX_SHOWN_LENGTH = 100


class FillField(Closed):
    """Which field to fill, and with what."""

    locator: Locator
    value: StrictStr | None = Field(
        default=None,
        max_length=50_000,
        description="Text to type; the label of an option; true or false for a checkbox; YYYY-MM-DD"
        " for a date.",
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
    """Fill a field of the run's page with real input: text, option, checkbox, date, rich editor.

    Returns match {type, label, score, by, matched, equals}, the value ("***" if the field or the
    value is secret), and warnings if the page changed the value.
    """
    value, is_secret = _value_of(args, ctx)
    async with lease_run_tab(ctx) as tab:
        interactor = interactor_for(tab, ctx, timeout_ms=args.timeout_ms)
        field, warnings = await interactor.fill(args.locator, value, is_secret=is_secret)
    shown = MASK if is_secret or field.is_secret else value[:MAX_SHOWN_LENGTH]
    return {"match": field.match, "value": shown, "warnings": warnings}


def _value_of(args: FillField, ctx: ToolContext) -> tuple[str, bool]:
    if args.secret is None:
        return args.value or "", False
    if args.secret not in ctx.secrets:
        raise InvalidTarget(f"The run has no secret input {args.secret[:64]!r}.")
    return ctx.secrets[args.secret], True
