"""Repeat a write that the database rolled back because it conflicted with another one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import Error, connection

from decisions.foundation.database.faults import Fault, fault_of

CONFLICTS = frozenset({Fault.CONFLICT})
PAUSE_S = 0.1  # the other write gets the lock first: without it, the same two conflict again
Written = TypeVar("Written")
log = logging.getLogger(__name__)


def repeat_after_conflict(write: Callable[[], Written]) -> Written:
    """Return what `write` returns, calling it once more after a deadlock or serialization failure.

    Inside the caller's transaction it is not repeated: the earlier writes of that transaction were
    rolled back too.
    """
    if connection.in_atomic_block:
        return write()
    try:
        return write()
    except Error as error:
        if fault_of(error) not in CONFLICTS:
            raise
        log.warning("the database rolled back a write, which is repeated: %s", error)
        time.sleep(PAUSE_S)
        return write()
