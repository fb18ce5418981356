"""The pages of tasks that are open in this process, for people who look at them.

Written and asked on the loop thread, but for `are_open`.
"""

from __future__ import annotations

import os

from runners.browser.session.session import BrowserSession

_open: dict[tuple[int, str], tuple[str, BrowserSession]] = {}


def register_page(task_id: str, run_id: str, session: BrowserSession) -> None:
    """Have the page of this run be that of its task, for as long as the session is open."""
    _open[os.getpid(), task_id] = run_id, session


def get_page_session(task_id: str) -> BrowserSession | None:
    """Return the session that has a task's page, if it is here and still that run's."""
    run_id, session = _open.get((os.getpid(), task_id), ("", None))
    if session is None or session.is_closed:
        _open.pop((os.getpid(), task_id), None)
        return None
    return session if session.run_id == run_id else None


def has_open_pages() -> bool:
    """Tell whether a task has a page here. From any thread."""
    pid = os.getpid()
    for key, (_, session) in list(_open.items()):
        if key[0] == pid and session.is_closed:
            _open.pop(key, None)
    return any(owner == pid for owner, _ in list(_open))
