"""Several callers at the same moment, each with a thread and a database connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection


def at_once(calls: Iterable[Callable[[], Any]]) -> list[Any]:
    """Make all calls at the same moment and return their answers in the order given; the first
    exception is raised.
    """
    todo = list(calls)
    start = threading.Barrier(len(todo))

    def go(call: Callable[[], Any]) -> Any:
        start.wait(20)
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(todo)) as pool:
        return list(pool.map(go, todo))
