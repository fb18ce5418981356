"""What became of the places that the pages of a session asked for: kept in few words, for those who
tell it.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

# The browser's own words for each: behind a proxy it says nothing but that there was no tunnel.
ConnectFailure = Literal[
    "forbidden",
    "ERR_NAME_NOT_RESOLVED",
    "ERR_CONNECTION_REFUSED",
    "ERR_CONNECTION_TIMED_OUT",
    "ERR_ADDRESS_UNREACHABLE",
]
MAX_KEPT = 1000


@dataclass(slots=True)
class _Place:
    outcome: ConnectFailure
    at: float


class FailedConnections:
    """The failed connections of one session by host and port, the last thousand places.

    Attributes:
        wanted: what a place must be so as not to be forbidden, in words.
    """

    def __init__(self, requirement: str = "a public address") -> None:
        self.requirement = requirement
        self._places: OrderedDict[tuple[str, int], _Place] = OrderedDict()
        self._told: set[str] = set()
        self._named: dict[str, float] = {}

    def note(self, host: str, port: int, outcome: ConnectFailure) -> None:
        """Keep what became of a connection."""
        self._places[host, port] = _Place(outcome, time.monotonic())
        self._places.move_to_end((host, port))
        if len(self._places) > MAX_KEPT:
            self._places.popitem(last=False)

    def of(self, host: str, port: int) -> ConnectFailure | None:
        """Return what became of the last failed connection to a place, or None."""
        place = self._places.get((host, port))
        return place.outcome if place else None

    def attribute_to_page(self, host: str) -> None:
        """Note that a page is known to have asked for this forbidden host."""
        if len(self._told) < MAX_KEPT:
            self._told.add(host)

    def name(self, *hosts: str) -> None:
        """Note that a caller is told of these forbidden hosts."""
        for host in hosts:
            if len(self._named) < MAX_KEPT or host in self._named:
                self._named[host] = time.monotonic()

    def unreported(self, since: float) -> list[str]:
        """Return the forbidden hosts asked for since a `time.monotonic()` that nobody was told of
        since then.
        """
        hosts = (
            host
            for (host, _), place in self._places.items()
            if place.outcome == "forbidden" and place.at >= since
        )
        return [host for host in dict.fromkeys(hosts) if self._named.get(host, -1.0) < since]

    def unattributed(self, since: float) -> list[str]:
        """Return the forbidden hosts asked for since a `time.monotonic()` by no page that is known:
        by a worker, a popup, or a page whose word has yet to come.
        """
        hosts = (
            host
            for (host, _), place in self._places.items()
            if place.outcome == "forbidden" and place.at >= since and host not in self._told
        )
        return list(dict.fromkeys(hosts))
