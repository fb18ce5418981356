"""Perform browser actions in a paired browser: send the action, await its acknowledgment and its
result.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from decisions.foundation.infra.redis import redis_errors
from decisions.foundation.infra.threads import in_thread
from runners import metrics
from runners.errors import ToolFailed
from runners.paired_browser.errors import BrowserAckTimeout, BrowserExecTimeout, BrowserOffline
from runners.paired_browser.messaging.calls import ActionCall
from runners.paired_browser.messaging.channel import browser_channel
from runners.paired_browser.messaging.replies import Answers, ReplyHub, get_reply_hub
from runners.paired_browser.pairing import registry
from runners.paired_browser.pairing.selectors import was_connected

ACK_S = 1.5  # time for the browser to acknowledge an action
RESEND_S = 1.0  # pause before an unacknowledged action is sent once more
RECONNECT_S = 10.0  # time for a browser that was connected just now to connect again
RECONNECT_POLL_S = 0.25
POLL_S = 1.0
OVERHEAD_MS = 30_000  # what a call takes at most beside the execution of its action


@dataclass(frozen=True, slots=True)
class SentAction:
    """One action for a paired browser.

    Attributes:
        action_id: the idempotency key: the browser performs the actions of one id once.
        timeout_ms: the time to execute it, which starts with the acknowledgment.
        upload: {url, method, headers, maxBytes, expiresAt} of the upload for a large result.
        files: {fileName, mediaType, sizeBytes, url} of each file for browser_upload.
        expected_origin: the browser changes only a page of this origin; empty: of any.
        judged: {node, toNode?, compares}: the element that the action was judged by.
    """

    action_id: str
    task_id: str
    client_id: str
    name: str
    params: Mapping[str, Any]
    timeout_ms: int
    upload: Mapping[str, Any] | None = None
    files: Sequence[Mapping[str, Any]] = ()
    task_title: str = ""
    expected_origin: str = ""
    judged: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class BrowserReply:
    """What the browser answered; `error` is {code, message, retryable?, details?}.

    Attributes:
        page_origins: of the pages on which it worked; of one without origin, the scheme.
    """

    status: Literal["success", "error", "partial"]
    result: Mapping[str, Any] | None = None
    warnings: Sequence[str] = field(default_factory=tuple)
    missing: Sequence[str] = field(default_factory=tuple)
    error: Mapping[str, Any] | None = None
    page_origins: Sequence[str] = field(default_factory=tuple)


async def perform_in_browser(action: SentAction) -> BrowserReply:
    """Perform an action in a paired browser and return what the browser answered.

    Calling it again with the same action_id performs nothing twice: it returns the kept reply, or
    waits for it. It takes `timeout_ms` and at most OVERHEAD_MS.

    Raises:
        BrowserOffline: The browser is not connected.
        BrowserAckTimeout: It did not acknowledge the action.
        BrowserExecTimeout: It acknowledged the action and sent no result in time.
    """
    started_at, outcome = time.monotonic(), "interrupted"
    try:
        reply = await _perform(action)
        outcome = reply.status
        return reply
    except BrowserOffline:
        outcome = "offline"
        raise
    except BrowserAckTimeout:
        outcome = "no_ack"
        raise
    except BrowserExecTimeout:
        outcome = "no_result"
        raise
    finally:
        metrics.extension_action_ended(outcome, time.monotonic() - started_at)


async def collect_reply(action_id: str, *, wait_s: float) -> BrowserReply | None:
    """Return the reply to an action that another process sent, waiting for it; None if there is
    none, or Redis is unavailable.
    """
    hub = get_reply_hub()
    try:
        async with hub.receive_answers(action_id) as answers:
            call = await hub.calls.find(action_id)
            if call is not None and not call.has_ended:
                await hub.calls.open(replace(call, reply_to=hub.channel))
            until = time.monotonic() + wait_s
            kept = await hub.calls.find_reply(action_id)
            while kept is None and call is not None and (left := until - time.monotonic()) > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(left, POLL_S)):
                        await answers.get()
                kept = await hub.calls.find_reply(action_id)
            return None if kept is None else reply_from(kept)
    except redis_errors():
        return None


async def _perform(action: SentAction) -> BrowserReply:
    hub, call = get_reply_hub(), None
    try:
        async with hub.receive_answers(action.action_id) as answers:
            call = _Call(action, hub, answers)
            return await call.perform()
    except redis_errors() as error:
        message = "Redis is unavailable, so browsers cannot be reached."
        raise _offline(action, message, was_sent=call is not None and call.was_sent) from error


class _Call:
    """One call of an action."""

    def __init__(self, action: SentAction, hub: ReplyHub, answers: Answers) -> None:
        self._action, self._store, self._answers = action, hub.calls, answers
        self._call = ActionCall(
            action.action_id,
            action.client_id,
            action.task_id,
            action.name,
            hub.channel,
            action.params.get("tabId"),
        )
        self._attempt = 0
        self._reply: BrowserReply | None = None

    @property
    def was_sent(self) -> bool:
        """Whether a process that has the browser's socket received the action."""
        return self._attempt > 0

    async def perform(self) -> BrowserReply:
        """Perform the call.

        Raises:
            ToolFailed: As `perform_in_browser`.
            redis_errors(): Redis is unavailable.
        """
        kept = await self._store.find_reply(self._action.action_id)
        if kept is not None:
            return reply_from(kept)
        await self._store.open(self._call)
        try:
            await self._deliver()
            reply = await self._await_result()
        except ToolFailed as failed:
            kept = await self._end()  # the result may have arrived in the last moment
            if kept is None:
                if not isinstance(failed, BrowserOffline):
                    await in_thread(registry.action_timed_out, self._action.client_id)
                raise
            reply = reply_from(kept)
        else:
            await self._end()
        await in_thread(registry.action_answered, self._action.client_id)
        return reply

    async def _end(self) -> dict[str, Any] | None:
        """End the call, and return the kept reply, if there is one and Redis is available."""
        try:
            await self._store.end(self._call)
            return await self._store.find_reply(self._action.action_id)
        except redis_errors():
            return None

    # --- sending it -------------------------------------------------------------------------------

    async def _deliver(self) -> None:
        """Send the action until the browser acknowledges it: at most twice, a second apart.

        Raises:
            BrowserOffline, BrowserAckTimeout: Both attempts failed.
        """
        used = asyncio.ensure_future(in_thread(registry.action_sent, self._action.client_id))
        try:
            for pause_s in (RESEND_S, 0.0):
                if await self._send():
                    sent_at = time.monotonic()
                    if await self._is_acknowledged(ACK_S):
                        metrics.extension_acknowledged(time.monotonic() - sent_at)
                        return
                    failure: ToolFailed = _unacknowledged(self._action)
                elif self.was_sent:
                    failure = _unacknowledged(self._action)
                else:
                    failure = _offline(self._action, "The browser is not connected.")
                if pause_s and await self._is_acknowledged(pause_s):
                    return
        finally:
            await used
        raise failure

    async def _send(self) -> bool:
        """Send the action to the process that has the browser's socket; return whether there is
        one. A browser that was connected just now has a moment to connect again.
        """
        until: float | None = None
        while not await self._publish():
            if until is None:
                is_recent = await in_thread(was_connected, self._action.client_id)
                until = time.monotonic() + (RECONNECT_S if is_recent else 0.0)
            if time.monotonic() >= until:
                return False
            await asyncio.sleep(RECONNECT_POLL_S)
        return True

    async def _publish(self) -> bool:
        action = self._action
        message = {
            "id": action.action_id,
            "actionId": action.action_id,
            "taskId": action.task_id,
            "clientId": action.client_id,
            "attempt": self._attempt + 1,
            "timeoutMs": action.timeout_ms,
            "action": {action.name: dict(action.params)},
        }
        optional = {
            "upload": action.upload,
            "files": action.files,
            "taskTitle": action.task_title,
            "expectedOrigin": action.expected_origin,
            "judged": action.judged,
        }
        message |= {name: value for name, value in optional.items() if value}
        channel = browser_channel(action.client_id)
        sent = {"kind": "action", "call": asdict(self._call), "action": message}
        is_received = bool(await self._store.publish(channel, sent))
        self._attempt += is_received
        return is_received

    # --- its answers ------------------------------------------------------------------------------

    async def _is_acknowledged(self, seconds: float) -> bool:
        """Await an acknowledgment, or a result, which is one too."""
        until = time.monotonic() + seconds
        while (message := await self._next(until)) is not None:
            if message["kind"] in ("ack", "result"):
                self._take(message)
                return True
        return False

    async def _await_result(self) -> BrowserReply:
        """Await the result for the action's time limit, and return it.

        Raises:
            BrowserExecTimeout: It did not come.
        """
        until = time.monotonic() + self._action.timeout_ms / 1000
        while self._reply is None:
            message = await self._next(until)
            if message is None:
                raise BrowserExecTimeout(
                    f"The browser did not finish {self._action.name} in time.",
                    details={"clientId": self._action.client_id, "effect": "unknown"},
                )
            if message["kind"] == "reconnected":
                await self._publish()
            else:
                self._take(message)
        return self._reply

    def _take(self, message: Mapping[str, Any]) -> None:
        if message["kind"] == "result":
            self._reply = reply_from(message["reply"])
        elif message["kind"] == "ack" and not message["ok"] and self._reply is None:
            self._reply = BrowserReply("error", error=message["error"])

    async def _next(self, until: float) -> Mapping[str, Any] | None:
        """Return the next answer, or None at the deadline. The kept reply is read every POLL_S: the
        message about it may be lost.
        """
        while (left := until - time.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, POLL_S)):
                    return await self._answers.get()
            with contextlib.suppress(*redis_errors()):  # it may be back before the deadline
                kept = await self._store.find_reply(self._action.action_id)
                if kept is not None:
                    return {"kind": "result", "reply": kept}
        return None


def reply_from(kept: Mapping[str, Any]) -> BrowserReply:
    """Return the reply that a browser's `browser_action_result` is."""
    return BrowserReply(
        kept["status"],
        kept.get("result"),
        tuple(kept.get("warnings", ())),
        tuple(kept.get("missing", ())),
        kept.get("error"),
        tuple(kept.get("pageOrigins", ())),
    )


def _offline(action: SentAction, message: str, *, was_sent: bool = False) -> BrowserOffline:
    effect = "unknown" if was_sent else "none"
    return BrowserOffline(message, details={"clientId": action.client_id, "effect": effect})


def _unacknowledged(action: SentAction) -> BrowserAckTimeout:
    return BrowserAckTimeout(
        f"The browser did not acknowledge {action.name} within {ACK_S} s, twice.",
        details={"clientId": action.client_id, "effect": "unknown"},
    )
