"""The tool `check_login`: tell whether a login that was just sent has worked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from runners.browser.errors import browser_lost
from runners.browser.interaction.screenshot import save_screenshot
from runners.browser.parameters import WaitCondition
from runners.browser.tools.wait_for import WaitFor, wait_for
from runners.errors import LoginNotConfirmed
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool

TEXT_MAX = 300


class CheckLogin(Closed):
    """How to tell."""

    indicator: WaitCondition | None = Field(
        default=None, description="What is true only once the login worked."
    )


@tool("check_login", kind="browser", effect=Effect.READ, timeout_ms=180_000)
async def check_login(args: CheckLogin, ctx: ToolContext) -> Mapping[str, Any]:
    """Wait until the page that came of a login is at rest and the indicator, if there is one, true.

    Returns met (null without an indicator), url, title, cookies (how many the session has) and
    warnings. An indicator that does not come true fails, with a screenshot as an artifact.
    """
    if ctx.browser is None:
        raise browser_lost()
    seen = await wait_for.function(WaitFor(condition=args.indicator), ctx)
    if seen["met"] is False and args.indicator is not None:
        raise await _not_confirmed(args.indicator, seen, ctx)
    return {
        "met": seen["met"],
        "url": seen["url"],
        "title": seen["title"],
        "cookies": await ctx.browser.count_cookies(),
        "warnings": seen["warnings"],
    }


async def _not_confirmed(
    indicator: WaitCondition, seen: Mapping[str, Any], ctx: ToolContext
) -> LoginNotConfirmed:
    """Return the failure, with what a person would look at to understand it."""
    title, refused = str(seen["title"])[:TEXT_MAX], seen["refusedFields"]
    says = f" It marks as wrong: {', '.join(one['field'] for one in refused)}." if refused else ""
    details: dict[str, Any] = {
        "reason": "indicator_not_met",
        "indicator": indicator.model_dump(by_alias=True, exclude_none=True),
        "url": seen["url"],
        "title": title,
        "httpStatus": seen["httpStatus"],
        "refusedFields": refused,
    }
    picture = await save_screenshot(ctx)
    if picture is not None:
        details["screenshotArtifactId"] = picture
    return LoginNotConfirmed(
        f"The login form was sent, but what tells success ({indicator.type}"
        f" {indicator.value or ''!r}) did not come true within {indicator.timeout_ms} ms; the page"
        f" shows “{title}”.{says}",
        details=details,
    )
