"""Ask the page which element a step's call uses, before the call is decided on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from decisions.authorization.authorize import ToolCallRequest
from decisions.foundation.errors import Refused
from runners.browser.session.session import OpenBrowserSession
from runners.errors import ToolFailed
from runners.invocation.judge import judge_element, request_for
from runners.paired_browser.choice import PairedBrowser, is_paired_browser
from runners.tools.base import ToolContext
from runs.calls.browser_policy import with_browser_policy
from runs.calls.page_elements import PageCall, may_ask_page, needs_page, with_element
from runs.calls.policy import find_call_target, is_taken_over
from runs.models import Run


@dataclass(frozen=True, slots=True)
class PageJudge:
    """Asks the pages of one step.

    Attributes:
        query_run: calls a function with the run, on the thread with the database.
        context: the context of the step's calls.
        action_id: of the call in a paired browser.
    """

    run: Run
    browser: OpenBrowserSession | None
    query_run: Callable[[Callable[[Run], Any]], Awaitable[Any]]
    context: ToolContext
    action_id: str

    async def judge(
        self, request: ToolCallRequest, *, is_asked: bool
    ) -> tuple[ToolCallRequest, PageCall | None]:
        """Return the request bound to the element that the call uses, if the page has to say that
        before the call is decided on, and the element.

        Args:
            is_asked: the page has to say it, whatever the rules.

        Raises:
            ToolFailed: There is no such element; nothing was done.
        """
        page = await self._ask(request, is_asked=is_asked) if may_ask_page(request) else None
        judged = None if page is None else page.judged
        if judged is not None:
            request = with_element(request, judged)
        if is_paired_browser(request.target_id):
            request = await self.query_run(lambda run: with_browser_policy(run, request, judged))
        return request, page

    async def _ask(self, request: ToolCallRequest, *, is_asked: bool) -> PageCall | None:
        is_elsewhere = is_paired_browser(request.target_id)
        if not is_elsewhere and (self.browser is None or not self.browser.has_page):
            return None
        if not await self.query_run(lambda run: _has_to_ask(run, request, is_asked=is_asked)):
            return None
        asked = request_for(request.tool, request.args)
        if asked is None:
            return None
        return PageCall(asked, await judge_element(asked, self._context_of(request)))

    def _context_of(self, request: ToolCallRequest) -> ToolContext:
        if not is_paired_browser(request.target_id):
            return self.context
        place = PairedBrowser(
            client_id=request.target_id or "",
            task_id=self.run.task_id or self.run.id,
            task_title="",
            action_id=self.action_id,
        )
        return replace(self.context, paired_browser=place)


def _has_to_ask(run: Run, request: ToolCallRequest, *, is_asked: bool) -> bool:
    """Return whether the page is asked: not while a person has taken it over, or where the browser
    is not the caller's; the admission says so.
    """
    if is_taken_over(run) or isinstance(find_call_target(run, request), Refused | ToolFailed):
        return False
    return is_asked or needs_page(request)
