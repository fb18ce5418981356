"""Handle the messages of a connected browser about its state and its actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decisions.audit.record import AuditEvent, record
from decisions.foundation.infra.threads import in_thread
from runners.actions.catalogue import ACTIONS, SWITCH_TAB, TASK_START
from runners.paired_browser.connections.hub import ExtensionConnection, ExtensionHub
from runners.paired_browser.messaging.calls import ActionCall
from runners.paired_browser.protocol.browser_state import BrowserState
from runners.paired_browser.protocol.flood import RecordBudget
from runners.paired_browser.protocol.messages import ack, refusal

INVALID_TASK_TAB = "INVALID_TASK_TAB"
_OTHER_TAB = (TASK_START.name, SWITCH_TAB.name)  # their result is about a tab that they chose
_REPLY_FIELDS = ("status", "result", "warnings", "missing", "error", "pageOrigins")
Message = Mapping[str, Any]


class ConnectionSession:
    """The state and the actions of one connected browser. Every method returns the answer to a
    message, and raises redis_errors() if Redis is unavailable.
    """

    def __init__(self, connection: ExtensionConnection, hub: ExtensionHub) -> None:
        self._connection, self._hub = connection, hub
        self._ignored = RecordBudget()

    # --- what it has open -------------------------------------------------------------------------

    def accept_state(self, message: Message) -> dict[str, Any]:
        """Replace the state by a complete one."""
        connection = self._connection
        connection.state, connection.seq = BrowserState(message["state"]), message["seq"]
        self._hub.state_changed(connection)
        return ack(message["id"])

    def apply_event(self, message: Message) -> dict[str, Any]:
        """Apply a tab event; after a gap, or if it does not fit the state, request the complete
        state.
        """
        connection, seq = self._connection, message["seq"]
        if seq <= connection.seq:  # sent again
            return ack(message["id"])
        is_next = seq == connection.seq + 1
        if connection.state is None or not is_next or not connection.state.apply(message["event"]):
            return ack(message["id"], resync=True)
        connection.seq = seq
        self._hub.state_changed(connection)
        return ack(message["id"])

    # --- its actions ------------------------------------------------------------------------------

    async def forward_ack(self, message: Message) -> None:
        """Inform the caller of an action that the browser acknowledged or refused it."""
        call = self._connection.calls.get(message["id"])
        if call is None:
            return
        answer = {"kind": "ack", "actionId": call.action_id, "ok": message["ok"]}
        if not message["ok"]:
            error = {"code": "EXECUTION_ERROR", "message": "The browser refused the action."}
            answer["error"] = message.get("error", error)
            del self._connection.calls[call.action_id]
        await self._hub.calls.publish(call.reply_to, answer)

    async def accept_result(self, message: Message) -> dict[str, Any]:
        """Keep the result of an action and inform its caller; ignore a late or a second one, which
        is audited.
        """
        action_id = message["actionId"]
        known = self._connection.calls.pop(action_id, None)
        call = await self._hub.calls.find(action_id) or known
        if call is None or not self._is_of(call, message):
            return await self._ignore(message, call, "unknown")
        if call.has_ended:
            has_reply = await self._hub.calls.find_reply(action_id) is not None
            return await self._ignore(message, call, "duplicate" if has_reply else "late")
        is_of_tab = _is_of_tab(call, message)
        reply = {name: message[name] for name in _REPLY_FIELDS if name in message}
        if not is_of_tab:
            reply = {"status": "error", "error": _wrong_tab(message)}
        if not await self._hub.calls.keep_reply(action_id, reply):
            return await self._ignore(message, call, "duplicate")
        answer = {"kind": "result", "actionId": action_id, "reply": reply}
        await self._hub.calls.publish(call.reply_to, answer)
        if is_of_tab:
            return ack(message["id"])
        return refusal(message["id"], INVALID_TASK_TAB, reply["error"]["message"])

    def _is_of(self, call: ActionCall, message: Message) -> bool:
        is_mine = call.client_id == self._connection.client_id
        return is_mine and call.task_id == message["taskId"]

    async def _ignore(
        self, message: Message, call: ActionCall | None, reason: str
    ) -> dict[str, Any]:
        omitted = self._ignored.take()
        if omitted is not None:
            await in_thread(self._record_ignored, message, call, reason, omitted)
        return ack(message["id"])

    def _record_ignored(
        self, message: Message, call: ActionCall | None, reason: str, omitted: int
    ) -> None:
        principal = self._connection.principal
        details = {
            "actionId": message["actionId"],
            "taskId": message["taskId"],
            "status": message["status"],
            "reason": reason,
        }
        if call is not None and reason != "unknown":
            details["action"] = call.name
        if omitted:
            details["notRecorded"] = omitted  # results that were ignored since the last record
        event = AuditEvent(
            "plugin.result_ignored",
            principal.id,
            "plugin_client",
            self._connection.client_id,
            principal.tenant_id,
            principal.workspace_id,
            details,
        )
        record(event)


def _is_of_tab(call: ActionCall, message: Message) -> bool:
    """Return whether a result is about the tab that its action names."""
    if call.tab_id is None or call.name in _OTHER_TAB or call.name not in ACTIONS:
        return True
    return bool(message.get("tabId", call.tab_id) == call.tab_id)


def _wrong_tab(message: Message) -> dict[str, Any]:
    text = f"The result is about tab {message['tabId']}, which is not the action's tab."
    return {"code": INVALID_TASK_TAB, "message": text, "retryable": False}
