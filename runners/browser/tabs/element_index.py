"""Commands that number elements or read text in all shadow roots of a task's page, the closed ones
too (page/click_ids.js, page/find_text.js).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from runners.browser.errors import ContextLost
from runners.browser.reading.shadow_dom import expose_closed_roots
from runners.browser.tabs.run_tab import RESERVE_SECONDS
from runners.browser.tabs.task_tab import TaskTab
from runners.errors import NavigationTimeout
from runners.tools.base import ToolContext

EXPOSE_ROUNDS = 8  # a closed shadow root may contain another
EXPOSE_SECONDS = 5.0


async def index_elements(
    task: TaskTab, ctx: ToolContext, *, mode: Literal["mark", "scan"], scope: str, attribute: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the elements and warnings; with mode `mark`, number them and write the numbers to the
    page's `attribute`.

    Raises:
        NavigationTimeout, PageCrashed: As `run_in_all_roots`.
    """
    args = {"mode": mode, "scope": scope, "attribute": attribute}
    answer = await run_in_all_roots(task, ctx, "index", lambda: args)
    return answer["elements"], _omitted_warning(answer["omitted"])


async def run_in_all_roots(
    task: TaskTab, ctx: ToolContext, command: str, args: Callable[[], Mapping[str, Any]]
) -> dict[str, Any]:
    """Run a command of the page, after the closed shadow roots for which it asks are exposed.

    `args` is called before each attempt. If the page navigates to another document, the command is
    run there, until the action's time is over.

    Raises:
        NavigationTimeout: The page does not answer, or keeps navigating.
        PageCrashed: The page is lost.
    """
    rounds = 0
    while rounds < EXPOSE_ROUNDS and (seconds := ctx.seconds_left() - RESERVE_SECONDS) > 0:
        request = {**args(), "firstId": task.next_click_id}
        try:
            answer = await task.tab.run_command(command, request, seconds=seconds)
            if not answer["closedHosts"]:
                task.next_click_id = max(task.next_click_id, answer.get("nextId", 0))
                return answer
            rounds += 1
            await expose_closed_roots(task.tab, seconds=min(EXPOSE_SECONDS, seconds))
        except ContextLost:
            continue
        except TimeoutError:
            break
    raise NavigationTimeout(
        "The page keeps changing, so it could not be read.", details={"url": task.tab.page.url}
    )


def _omitted_warning(count: int) -> list[str]:
    return [f"{count} more elements, further down, were omitted."] if count else []
