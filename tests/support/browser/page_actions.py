"""Functions that open a page in a session, fill its fields, click and read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.template_sites import HEAD

LOG = """<script>
const log = [];
for (const kind of ["pointerdown", "click", "input", "change", "keydown", "keyup", "focusin"])
  document.addEventListener(kind, (event) => log.push(
    `${kind}:${event.composedPath()[0].id ?? ""}:${event.isTrusted}`), true);
</script>"""


def open_markup(reader: Reader, server: PageServer, markup: str) -> None:
    """Open a page with this markup; the page logs its events."""
    url = server.add("/hand", f"{HEAD}<title>Hand</title>{LOG}{markup}")
    assert reader.call("open_page", url=url).ok


def evaluate(reader: Reader, expression: str) -> Any:
    """Return the value of a JavaScript expression in the page's main world."""

    async def evaluate_in_tab() -> Any:
        async with reader.session.run_tab() as tab:
            return await tab.page.evaluate(expression)

    return reader.wait(evaluate_in_tab())


def fill(reader: Reader, locator: dict[str, str], value: str) -> Mapping[str, Any]:
    """Fill a field and return the tool's output."""
    result = reader.call("fill_field", locator=locator, value=value)
    assert result.output is not None, result.error
    return dict(result.output)


def tool_error(reader: Reader, tool: str, **args: Any) -> dict[str, Any]:
    """Call a tool that must fail, and return its error."""
    result = reader.call(tool, **{"timeoutMs": 300, **args})
    assert result.error is not None, result.output
    return dict(result.error)


def click(reader: Reader, locator: dict[str, str], **args: Any) -> Mapping[str, Any]:
    """Click an element and return the tool's output."""
    result = reader.call("click_element", locator=locator, **args)
    assert result.output is not None, result.error
    return dict(result.output)
