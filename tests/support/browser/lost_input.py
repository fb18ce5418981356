"""Sessions for real input that are lost: before the input, or right after it was sent."""

from __future__ import annotations

from typing import Any

from playwright.async_api import CDPSession, Error

from runners.browser.tabs.task_tab import TaskTab, current_task_tab
from tests.support.browser.page_reader import Reader
from tests.support.browser.task_page import TaskPage

FALLBACK_WARNINGS = ["CDP_UNAVAILABLE: real input was not available; synthetic events were used."]


class ClosingSession:
    """A DevTools session that closes right after input of one kind was sent: the input takes
    effect, but no answer arrives, unless it `is_answered`."""

    def __init__(self, session: CDPSession, close_after: str, is_answered: bool) -> None:
        self._session, self._close_after = session, close_after
        self._is_answered, self._is_closed = is_answered, False

    async def send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a message."""
        if self._is_closed:
            raise Error("Protocol error: Session closed.")
        answer: dict[str, Any] = await self._session.send(method, params)
        if params.get("type") == self._close_after:
            self._is_closed = True
            if not self._is_answered:
                raise Error("Protocol error: Session closed.")
        return answer

    def on(self, event: str, listener: Any) -> None:
        """Call the listener at each event of this name."""
        self._session.on(event, listener)

    def remove_listener(self, event: str, listener: Any) -> None:
        """Do not call the listener any more."""
        self._session.remove_listener(event, listener)


def task_of(reader: Reader) -> TaskTab:
    """Return the session's task tab."""
    task = current_task_tab(reader.session)
    assert task is not None
    return task


def detach(page: TaskPage) -> None:
    """Detach the input session without the product's knowledge."""
    page("debugger_attach")

    async def detach_session() -> None:
        await (await task_of(page.read).attach()).detach()

    page.read.wait(detach_session())


def close_session_after(page: TaskPage, kind: str, *, is_answered: bool = False) -> None:
    """Close the input session right after input of this kind was sent, or was answered."""

    async def replace_session() -> None:
        task = task_of(page.read)
        session = ClosingSession(await task.attach(), kind, is_answered)
        task._cdp = session  # type: ignore[assignment]

    page.read.wait(replace_session())
