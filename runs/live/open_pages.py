"""The open pages of tasks in this process, by task.

`register_page` and `get_page_session` are for the loop thread, `has_open_pages` for any thread.
"""

from __future__ import annotations

from runners.browser.session.session import OpenBrowserSession

_open: dict[str, tuple[str, OpenBrowserSession]] = {}  # runs and sessions by task


def register_page(task_id: str, run_id: str, session: OpenBrowserSession) -> None:
    """Make this run's session the one whose page viewers of the task see, until it is closed."""
    _open[task_id] = run_id, session


def get_page_session(task_id: str) -> OpenBrowserSession | None:
    """Return the open session with the task's page; None if closed or used by another run."""
    run_id, session = _open.get(task_id, ("", None))
    if session is None or session.is_closed:
        _open.pop(task_id, None)
        return None
    return session if session.run_id == run_id else None


def has_open_pages() -> bool:
    """Return whether a task has an open page in this process."""
    for task_id, (_, session) in list(_open.items()):
        if session.is_closed:
            _open.pop(task_id, None)
    return bool(_open)
