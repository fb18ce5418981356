"""The tool `check_login`: check whether a login that was just submitted succeeded."""

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

MAX_TEXT_LENGTH = 300


class CheckLogin(Closed):
    """How to recognize success."""

    indicator: WaitCondition | None = Field(
        default=None, description="A condition that is true only after a successful login."
    )


@tool("check_login", kind="browser", effect=Effect.READ, timeout_ms=180_000)
async def check_login(args: CheckLogin, ctx: ToolContext) -> Mapping[str, Any]:
    """Wait until the page after a login has loaded and the indicator, if there is one, is true.

    Returns met (null without an indicator), url, title, cookies (how many the session has) and
    warnings. If the indicator does not become true, the tool fails and stores a screenshot.
    """
    if ctx.browser is None:
        raise browser_lost()
    page = await wait_for.function(WaitFor(condition=args.indicator), ctx)
    if page["met"] is False and args.indicator is not None:
        raise await _not_confirmed(args.indicator, page, ctx)
    return {
        "met": page["met"],
        "url": page["url"],
        "title": page["title"],
        "cookies": await ctx.browser.count_cookies(),
        "warnings": page["warnings"],
    }


async def _not_confirmed(
    indicator: WaitCondition, page: Mapping[str, Any], ctx: ToolContext
) -> LoginNotConfirmed:
    """Return the failure with the page's title, rejected fields and a screenshot."""
    title, refused = str(page["title"])[:MAX_TEXT_LENGTH], page["refusedFields"]
    names = ", ".join(field["field"] for field in refused)
    marked = f" It marks as wrong: {names}." if refused else ""
    details: dict[str, Any] = {
        "reason": "indicator_not_met",
        "indicator": indicator.model_dump(by_alias=True, exclude_none=True),
        "url": page["url"],
        "title": title,
        "httpStatus": page["httpStatus"],
        "refusedFields": refused,
    }
    screenshot_id = await save_screenshot(ctx)
    if screenshot_id is not None:
        details["screenshotArtifactId"] = screenshot_id
    return LoginNotConfirmed(
        f"The login form was sent, but the success indicator ({indicator.type}"
        f" {indicator.value or ''!r}) did not become true within {indicator.timeout_ms} ms; the"
        f" page shows “{title}”.{marked}",
        details=details,
    )
