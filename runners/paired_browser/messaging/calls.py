"""The calls of actions in Redis: who waits for which, and the results that browsers reported.

A result is kept before it is acknowledged, so neither a web process nor a worker that dies loses
one. All values are sealed, and expire after an hour.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import orjson

from decisions.foundation.security.keys import seal, unseal
from decisions.foundation.security.sealed_messages import seal_message
from runners.paired_browser.messaging.channel import key_of

if TYPE_CHECKING:
    from redis.asyncio import Redis

KEPT_S = 3600
_CALL, _REPLY = "plugin call", "plugin reply"


@dataclass(frozen=True, slots=True)
class ActionCall:
    """A call of an action.

    Attributes:
        tab_id: the tab that the action names.
        reply_to: the channel of the process that waits.
        has_ended: no caller waits for it any more.
    """

    action_id: str
    client_id: str
    task_id: str
    name: str
    reply_to: str
    tab_id: int | None = None
    has_ended: bool = False


class CallStore:
    """The calls in Redis; every method raises redis_errors() if it is unavailable."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def open(self, call: ActionCall) -> None:
        """Keep a call before its action is sent."""
        of_client = key_of("calls", call.client_id)
        async with self._client.pipeline(transaction=True) as pipe:
            pipe.set(key_of("call", call.action_id), _sealed_call(call), ex=KEPT_S)
            pipe.sadd(of_client, call.action_id)
            pipe.expire(of_client, KEPT_S)
            await pipe.execute()

    async def end(self, call: ActionCall) -> None:
        """Mark a call as ended: results that arrive from now on are late."""
        ended = _sealed_call(replace(call, has_ended=True))
        async with self._client.pipeline(transaction=True) as pipe:
            pipe.set(key_of("call", call.action_id), ended, ex=KEPT_S)
            pipe.srem(key_of("calls", call.client_id), call.action_id)
            await pipe.execute()

    async def list_open(self, client_id: str) -> list[ActionCall]:
        """Return the calls that a browser has not answered."""
        names = await cast(Awaitable[set[bytes]], self._client.smembers(key_of("calls", client_id)))
        calls = [await self.find(name.decode()) for name in names]
        return [call for call in calls if call is not None and not call.has_ended]

    async def find(self, action_id: str) -> ActionCall | None:
        """Return a call, or None if it is unknown or too old."""
        data = _unsealed(await self._client.get(key_of("call", action_id)), _CALL, action_id)
        return None if data is None else ActionCall(**data)

    async def keep_reply(self, action_id: str, reply: Mapping[str, Any]) -> bool:
        """Keep the reply to a call, unless one is kept; return whether it is the first."""
        sealed = _sealed(reply, _REPLY, action_id)
        key = key_of("reply", action_id)
        return bool(await self._client.set(key, sealed, ex=KEPT_S, nx=True))

    async def find_reply(self, action_id: str) -> dict[str, Any] | None:
        """Return the reply that is kept for a call, or None."""
        return _unsealed(await self._client.get(key_of("reply", action_id)), _REPLY, action_id)

    async def publish(self, channel: str, message: Mapping[str, Any]) -> int:
        """Publish a sealed message; return how many processes received it."""
        return int(await self._client.publish(channel, seal_message(channel, message)))


def _sealed_call(call: ActionCall) -> bytes:
    return _sealed(asdict(call), _CALL, call.action_id)


def _sealed(value: Mapping[str, Any], purpose: str, name: str) -> bytes:
    return seal(orjson.dumps(value), purpose=purpose, bound_to=name)


def _unsealed(sealed: object, purpose: str, name: str) -> dict[str, Any] | None:
    if not isinstance(sealed, bytes):
        return None
    try:
        value: dict[str, Any] = orjson.loads(unseal(sealed, purpose=purpose, bound_to=name))
    except ValueError:  # forged, or sealed under a key that is not configured any more
        return None
    return value
