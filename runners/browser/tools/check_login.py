"""The tool `check_login`: check whether a login that was just submitted succeeded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictBool

from runners.browser.errors import browser_lost
from runners.browser.parameters import WaitCondition
from runners.browser.reading.screenshot import save_screenshot, shows_secret
from runners.browser.tabs.task_tab import end_task, start_task
from runners.browser.tools.wait_for import WaitFor, wait_for
from runners.errors import LoginNotConfirmed
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool

MAX_TEXT_LENGTH = 300
FORM_SECONDS = 5.0  # for a page whose script logs in to leave the form
POLL_SECONDS = 0.25


class CheckLogin(Closed):
    """How to recognize success."""

    indicator: WaitCondition | None = Field(
        default=None, description="A condition that is true only after a successful login."
    )
    held_before: StrictBool = Field(
        default=False,
        alias="heldBefore",
        description="The indicator was true before the login too, so that it shows nothing.",
    )


@tool("check_login", kind="browser", effect=Effect.READ, timeout_ms=180_000)
async def check_login(args: CheckLogin, ctx: ToolContext) -> Mapping[str, Any]:
    """Wait until the page after a login has loaded and the indicator, if there is one, is true.

    Returns met (null without an indicator), url, title, cookies (how many the session has) and
    warnings. If the indicator does not become true, the tool fails and stores a screenshot; without
    an indicator also if the page still asks for a password, marks a field as wrong, or is an error
    page.
    """
    if ctx.browser is None:
        raise browser_lost()
    page = await wait_for.function(WaitFor(condition=args.indicator), ctx)
    if page["met"] is False and args.indicator is not None:
        raise await _not_confirmed(args.indicator, page, ctx)
    met = None if args.held_before else page["met"]
    if met is None:
        page = await _leave_form(page, ctx)
        if (sign := _sign_of_failure(page)) is not None:
            raise await _seems_refused(sign, page, ctx)
    await _leave_page(ctx)
    return {
        "met": met,
        "url": page["url"],
        "title": page["title"],
        "cookies": await ctx.browser.count_cookies(),
        "warnings": page["warnings"],
    }


async def _leave_page(ctx: ToolContext) -> None:
    """Let browser actions in this session go on with the page, for example if it asks for a code;
    but not if it shows one of the credentials, which only this run masks.
    """
    if ctx.browser is None:
        return
    await end_task(ctx.browser)
    async with ctx.browser.run_tab() as tab:
        if not await shows_secret(tab, ctx.mask, ctx.seconds_left):
            start_task(ctx.browser, tab)


async def _leave_form(page: Mapping[str, Any], ctx: ToolContext) -> Mapping[str, Any]:
    """Return the page once it is no login form any more, or as it is after FORM_SECONDS."""
    until = time.monotonic() + ctx.seconds_left(FORM_SECONDS)
    while page["pageType"] == "login" and time.monotonic() < until:
        await asyncio.sleep(POLL_SECONDS)
        page = await wait_for.function(WaitFor(), ctx)
    return page


def _sign_of_failure(page: Mapping[str, Any]) -> str | None:
    if (page["httpStatus"] or 200) >= 400:
        return f"the server answered with HTTP status {page['httpStatus']}"
    if page["refusedFields"]:
        return "the page marks fields as wrong"
    return "the page still asks for a password" if page["pageType"] == "login" else None


async def _seems_refused(sign: str, page: Mapping[str, Any], ctx: ToolContext) -> LoginNotConfirmed:
    """Return the failure of a login that no indicator can confirm."""
    details = await _details(page, ctx, reason="seems_refused")
    return LoginNotConfirmed(
        f"The login form was sent, but {sign}; the page shows “{details['title']}”.{_marked(page)}",
        details=details,
    )


async def _not_confirmed(
    indicator: WaitCondition, page: Mapping[str, Any], ctx: ToolContext
) -> LoginNotConfirmed:
    """Return the failure of a login whose indicator did not become true."""
    shown = indicator.model_dump(by_alias=True, exclude_none=True)
    details = await _details(page, ctx, reason="indicator_not_met", indicator=shown)
    return LoginNotConfirmed(
        f"The login form was sent, but the success indicator ({indicator.type}"
        f" {indicator.value or ''!r}) did not become true within {indicator.timeout_ms} ms; the"
        f" page shows “{details['title']}”.{_marked(page)}",
        details=details,
    )


def _marked(page: Mapping[str, Any]) -> str:
    names = ", ".join(field["field"] for field in page["refusedFields"])
    return f" It marks as wrong: {names}." if names else ""


async def _details(page: Mapping[str, Any], ctx: ToolContext, **more: Any) -> dict[str, Any]:
    """Return details of a failure: the page's title, rejected fields and a screenshot."""
    screenshot_id = await save_screenshot(ctx)
    return {
        **more,
        "url": page["url"],
        "title": str(page["title"])[:MAX_TEXT_LENGTH],
        "httpStatus": page["httpStatus"],
        "refusedFields": page["refusedFields"],
        **({"screenshotArtifactId": screenshot_id} if screenshot_id is not None else {}),
    }
