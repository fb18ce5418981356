"""Limit the tries of admin passwords, by client address and by user name.

After FREE_TRIES tries the next one has to wait, twice as long after each, up to a limit; an hour
after the last try the count is forgotten. The counts are in Redis, for all web processes together.

A browser that has signed in with a name before has a signed cookie and a count of its own: tries of
others with that name, or from the same address, do not make its user wait.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings

from decisions.audit.anonymous_events import peer_network
from decisions.foundation.infra.redis import SharedRedis
from decisions.foundation.security.keys import mac

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from redis import Redis

FREE_TRIES = 10
ADDRESS_WAIT_S = 300  # the longest wait for one address, and for one browser
NAME_WAIT_S = 30  # the longest for one name, because others can cause it
FORGET_S = 3600
COOKIE = "continuity_browser"
_COOKIE_AGE_S = 180 * 24 * 3600
_PURPOSE = "sign-in"  # key-derivation purpose of the names' digests


@dataclass(frozen=True, slots=True)
class Count:
    """What tries are counted under, and the longest wait for it."""

    name: str
    longest_wait_s: int


def counts_of(request: HttpRequest, username: str) -> list[Count]:
    """Return what a try counts toward: the browser if it has signed in with this name before, else
    the client's address and the name.
    """
    digest = mac(_PURPOSE, username.encode(errors="replace"))
    cookie = request.get_signed_cookie(COOKIE, default="", salt=digest, max_age=_COOKIE_AGE_S)
    if cookie:
        return [Count(f"browser:{cookie}", ADDRESS_WAIT_S)]
    peer = peer_network(request.META.get("REMOTE_ADDR", ""))
    return [Count(f"address:{peer}", ADDRESS_WAIT_S), Count(f"name:{digest}", NAME_WAIT_S)]


def remember_browser(request: HttpRequest, response: HttpResponse, username: str) -> None:
    """Set the cookie by which `counts_of` recognizes this browser for this name."""
    response.set_signed_cookie(
        COOKIE,
        secrets.token_hex(12),
        salt=mac(_PURPOSE, username.encode()),
        max_age=_COOKIE_AGE_S,
        path=request.path,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Strict",
    )


class SignInLimiter:
    """Counts tries. While Redis is unavailable, each process allows one try per second."""

    def __init__(self) -> None:
        self._redis = SharedRedis("each web process checks one password a second")
        self._lock = threading.Lock()
        self._last_try = -math.inf

    def begin_try(self, counts: list[Count]) -> int:
        """Count a try before its password is checked; return 0, or how many seconds to wait."""
        waits = [f"{_prefix()}{count.name}:wait" for count in counts]

        def check(redis: Redis) -> list[int]:
            with redis.pipeline(transaction=False) as pipe:
                for key in waits:
                    pipe.pttl(key)
                return [int(left) for left in pipe.execute()]

        lefts = self._redis.execute(check)
        if lefts is None:
            return self._wait_without_redis()
        if max(lefts) > 0:
            return math.ceil(max(lefts) / 1000)
        wait_s = self._redis.execute(lambda redis: _count(redis, counts))
        return 0 if wait_s is None else wait_s

    def _wait_without_redis(self) -> int:
        with self._lock:
            now = time.monotonic()
            if now - self._last_try < 1.0:
                return 1
            self._last_try = now
            return 0

    def end_try(self, counts: list[Count]) -> None:
        """Do not count the try: its password was right."""

        def uncount(redis: Redis) -> None:
            with redis.pipeline(transaction=True) as pipe:
                for count in counts:
                    pipe.decr(_prefix() + count.name)
                    pipe.expire(_prefix() + count.name, FORGET_S)
                pipe.execute()

        self._redis.execute(uncount)


def _prefix() -> str:
    return f"{settings.REDIS_PREFIX}sign-in:"


def _count(redis: Redis, counts: list[Count]) -> int:
    """Count a try; return how long to wait if another one was first after the free ones."""
    with redis.pipeline(transaction=True) as pipe:
        for count in counts:
            pipe.incr(_prefix() + count.name)
            pipe.expire(_prefix() + count.name, FORGET_S)
        tries = [int(number) for number in pipe.execute()[::2]]
    for count, number in zip(counts, tries, strict=True):
        if number <= FREE_TRIES:
            continue
        wait_s = min(1 << min(number - FREE_TRIES, 20), count.longest_wait_s)
        # Of concurrent tries, the one that sets the key is checked.
        if not redis.set(f"{_prefix()}{count.name}:wait", 1, px=wait_s * 1000, nx=True):
            return wait_s
    return 0
