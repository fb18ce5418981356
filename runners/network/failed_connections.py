"""The failed connections of a session's pages, recorded by the proxy for warnings and errors."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

# Chromium's error names; behind the proxy Chromium itself reports only a failed tunnel.
ConnectFailure = Literal[
    "forbidden",
    "ERR_NAME_NOT_RESOLVED",
    "ERR_CONNECTION_REFUSED",
    "ERR_CONNECTION_TIMED_OUT",
    "ERR_ADDRESS_UNREACHABLE",
]
MAX_RECORDED = 1000


@dataclass(slots=True)
class _Entry:
    failure: ConnectFailure
    at: float


class FailedConnections:
    """The failed connections of one session by host and port: the 1000 most recent.

    Times are `time.monotonic()` values.

    Attributes:
        requirement: what the egress policy permits, in words, for messages.
    """

    def __init__(self, requirement: str = "a public address") -> None:
        self.requirement = requirement
        self._entries: OrderedDict[tuple[str, int], _Entry] = OrderedDict()
        self._attributed: set[str] = set()
        self._reported: dict[str, float] = {}

    def record(self, host: str, port: int, failure: ConnectFailure) -> None:
        """Record why a connection failed."""
        self._entries[host, port] = _Entry(failure, time.monotonic())
        self._entries.move_to_end((host, port))
        if len(self._entries) > MAX_RECORDED:
            self._entries.popitem(last=False)

    def get(self, host: str, port: int) -> ConnectFailure | None:
        """Return why the last failed connection to a host and port failed, or None."""
        entry = self._entries.get((host, port))
        return entry.failure if entry else None

    def attribute_to_page(self, host: str) -> None:
        """Record that a known page requested this forbidden host."""
        if len(self._attributed) < MAX_RECORDED:
            self._attributed.add(host)

    def mark_reported(self, *hosts: str) -> None:
        """Record that the caller was informed about these forbidden hosts."""
        for host in hosts:
            if len(self._reported) < MAX_RECORDED or host in self._reported:
                self._reported[host] = time.monotonic()

    def unreported(self, since: float) -> list[str]:
        """Return the forbidden hosts requested since then that were not reported since then."""
        hosts = (
            host
            for (host, _), entry in self._entries.items()
            if entry.failure == "forbidden" and entry.at >= since
        )
        return [host for host in dict.fromkeys(hosts) if self._reported.get(host, -1.0) < since]

    def unattributed(self, since: float) -> list[str]:
        """Return the forbidden hosts requested since then that no page is known to have requested.

        A worker or a popup requested them, or a page whose failure event is still to come.
        """
        hosts = (
            host
            for (host, _), entry in self._entries.items()
            if entry.failure == "forbidden" and entry.at >= since and host not in self._attributed
        )
        return list(dict.fromkeys(hosts))
