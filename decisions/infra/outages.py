"""What is away for a while is said once when it goes and once when it is back, however often it is
tried in between.
"""

from __future__ import annotations

import logging


class Outage:
    """Of one thing that one loop needs.

    Args:
        log: where it is said.
        away: the sentence for the log when it goes, without an end mark; the error follows.
        back: the sentence for when it is back.
    """

    def __init__(self, log: logging.Logger, *, on_failure: str, on_recovery: str) -> None:
        self._log, self._away, self._back = log, on_failure, on_recovery
        self._is_on = False

    def failed(self, error: Exception) -> None:
        """Note that it did not answer."""
        if not self._is_on:
            self._log.warning("%s: %s", self._away, error)
        self._is_on = True

    def recovered(self) -> None:
        """Note that it answered."""
        if self._is_on:
            self._log.warning("%s", self._back)
        self._is_on = False
