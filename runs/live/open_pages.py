"""The open pages of tasks in this process, by task.

`register_page` and `get_page_session` are for the loop thread, `has_open_pages` for any thread.
"""

from __future__ import annotations

import os

from runners.browser.session.session import OpenBrowserSession

_open: dict[tuple[int, str], tuple[str, OpenBrowserSession]] = {}


def register_page(task_id: str, run_id: str, session: OpenBrowserSession) -> None:
    """Make this run's session the one whose page viewers of the task see, until it is closed."""
    _open[os.getpid(), task_id] = run_id, session


def get_page_session(task_id: str) -> OpenBrowserSession | None:
    """Return the open session with the task's page; None if closed or used by another run."""
    run_id, session = _open.get((os.getpid(), task_id), ("", None))
    if session is None or session.is_closed:
        _open.pop((os.getpid(), task_id), None)
        return None
    return session if session.run_id == run_id else None


def has_open_pages() -> bool:
    """Return whether a task has an open page in this process."""
    pid = os.getpid()
    for key, (_, session) in list(_open.items()):
        if key[0] == pid and session.is_closed:
            _open.pop(key, None)
    return any(owner == pid for owner, _ in list(_open))
