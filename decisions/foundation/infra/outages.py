"""Logging of outages: one warning when a dependency fails and one when it works again."""

from __future__ import annotations

import logging


class Outage:
    """The state of one dependency of one loop: available or not.

    Args:
        log: the logger of the warnings.
        on_failure: the message at the first failure; the error is appended.
        on_recovery: the message at the first success after a failure.
    """

    def __init__(self, log: logging.Logger, *, on_failure: str, on_recovery: str) -> None:
        self._log, self._on_failure, self._on_recovery = log, on_failure, on_recovery
        self._is_down = False

    def failed(self, error: Exception) -> None:
        """Record a failure; logs the first one of an outage."""
        if not self._is_down:
            self._log.warning("%s: %s", self._on_failure, error)
        self._is_down = True

    def recovered(self) -> None:
        """Record a success; logs it if it ends an outage."""
        if self._is_down:
            self._log.warning("%s", self._on_recovery)
        self._is_down = False
