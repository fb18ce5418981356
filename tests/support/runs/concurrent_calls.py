"""Concurrent callers, each with its own thread and database connection."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection


def at_once(calls: Iterable[Callable[[], Any]]) -> list[Any]:
    """Make all calls concurrently and return their answers in the given order.

    The first exception is raised.
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
