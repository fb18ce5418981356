"""Call browser actions on a task's page, as the agent's loop does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.browser.page_actions import LOG
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.template_sites import HEAD


class TaskPage:
    """A task's tab; the caller names actions without the prefix `browser_`."""

    def __init__(self, reader: Reader, tab_id: int) -> None:
        self.read, self.tab_id = reader, tab_id

    def __call__(self, name: str, **params: Any) -> Mapping[str, Any]:
        """Call an action that must succeed, and return its output."""
        result = self.read.call(f"browser_{name}", tabId=self.tab_id, **params)
        assert isinstance(result.output, dict), result.error
        return result.output

    def error(self, name: str, **params: Any) -> dict[str, Any]:
        """Call an action that must fail, and return its error."""
        result = self.read.call(f"browser_{name}", tabId=self.tab_id, **params)
        assert result.error is not None, result.output
        return dict(result.error)

    def index(self, **params: Any) -> dict[str, int]:
        """Return the clickIds of the interactive elements, by text."""
        elements = self("dom_index", **params)["elements"]
        return {element.get("text", ""): element["clickId"] for element in elements}

    def click(self, text: str, **params: Any) -> Mapping[str, Any]:
        """Index the page and click the element with this text."""
        return self("click", clickId=self.index()[text], **params)

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page's main world."""

        async def evaluate_in_tab() -> Any:
            async with self.read.session.run_tab() as tab:
                return await tab.page.evaluate(expression)

        return self.read.wait(evaluate_in_tab())

    @property
    def log(self) -> list[str]:
        """Return the page's events as kind:id:isTrusted."""
        return list(self.evaluate("log"))

    def saved(self) -> tuple[str, str, bytes]:
        """Return kind, MIME type and bytes of the artifact that was saved last."""
        return self.read.saved[-1]


def start_on_markup(
    reader: Reader, server: PageServer, markup: str, path: str = "/task"
) -> TaskPage:
    """Start a task on a page with this markup; the page logs its events."""
    url = server.add(path, f"{HEAD}<title>Task</title>{LOG}{markup}")
    return start_on_url(reader, url)


def start_on_url(reader: Reader, url: str, **params: Any) -> TaskPage:
    """Start a task on a URL."""
    result = reader.call("task_start", url=url, **params)
    assert result.output is not None, result.error
    return TaskPage(reader, int(result.output["tabId"]))
