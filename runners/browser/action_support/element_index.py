"""The elements of a task's page that can be used now (page/index.js)."""

from __future__ import annotations

from typing import Any, Literal

from runners.browser.action_support.shadow_dom import expose_closed_roots
from runners.browser.action_support.task_tab import TaskTab
from runners.browser.errors import ContextLost
from runners.browser.interaction.locator import ask
from runners.browser.interaction.run_tab import RESERVE_SECONDS
from runners.errors import NavigationTimeout
from runners.tools.base import ToolContext

ROUNDS = 8  # a closed shadow root may hold another; a page may go on to another document
PIERCE_SECONDS = 5.0


async def index_elements(
    task: TaskTab, ctx: ToolContext, *, how: Literal["mark", "scan"], scope: str, attribute: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the elements, and warnings; with `mark` each is given its number, also on the page.

    Raises:
        NavigationTimeout: The page does not answer, or does not come to rest on a document.
        PageCrashed: The page is gone.
    """
    for _ in range(ROUNDS):
        given = {"as": how, "scope": scope, "attribute": attribute, "first": task.next_click_id}
        seconds = max(0.1, ctx.seconds_left() - RESERVE_SECONDS)
        try:
            answer = await ask(task.tab, "index", given, seconds=seconds)
            if not answer["apart"]:
                task.next_click_id = max(task.next_click_id, answer["next"])
                return answer["elements"], _left_out(answer["left"])
            await expose_closed_roots(task.tab, seconds=min(PIERCE_SECONDS, seconds))
        except ContextLost:
            continue
        except TimeoutError:
            break
    raise NavigationTimeout(
        "The page does not hold still under its reader.", details={"url": task.tab.page.url}
    )


def _left_out(count: int) -> list[str]:
    return [f"{count} more elements, further down, were left out."] if count else []
