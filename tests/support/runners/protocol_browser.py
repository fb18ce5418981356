"""A paired browser that speaks the protocol of docs/extension-protocol.md, without a browser.

with pair_browser(web, ticket) as browser:
    browser.sync(tabs=[tab(1)])
    browser.perform = lambda action: {"result": {"clicked": True, "strategy": "cdp_mouse"}}
"""

from __future__ import annotations

import itertools
import json
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from decisions.foundation.validation.json_schema import check, compile_schema
from tests.support.runners.protocol_schemas import TO_BROWSER

TIMEOUT_S = 30.0
ORIGIN = "chrome-extension://lllnilefilhffgilgeigmjgmhaeckfbl"
ABOUT = {
    "extension": {"id": ORIGIN.rpartition("/")[2], "name": "Continuity", "version": "1.1.0"},
    "browser": {
        "userAgent": "Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0.0.0 Safari/537.36",
        "language": "en",
    },
}
Message = dict[str, Any]
_schemas = {type_: compile_schema(schema) for type_, schema in TO_BROWSER.items()}


def tab(tab_id: int, **fields: Any) -> Message:
    """Return a tab of the first window."""
    known = {"windowId": 1, "index": 0, "active": False, "pinned": False, "title": f"Tab {tab_id}"}
    return {"tabId": tab_id, "url": f"https://site.test/{tab_id}", **known, **fields}


class ProtocolBrowser:
    """An open connection; a thread receives.

    Attributes:
        perform: returns the fields of the result of an action; None: it sends none.
        acknowledge: whether it acknowledges actions.
        actions: the actions that it received, with repeated ones.
        acks: the answers to messages that `request` has not read.
        received: other messages of the server.
    """

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.perform: Callable[[Message], Message | None] = lambda action: {"result": {}}
        self.acknowledge = True
        self.actions: list[Message] = []
        self.received: queue.Queue[Message] = queue.Queue()
        self.session: Message = {}
        self.acks: queue.Queue[Message] = queue.Queue()
        self._ids = (f"m{number}" for number in itertools.count(1))
        self._seqs = itertools.count(1)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, message: Any) -> None:
        """Send a message; text and bytes are sent unchanged."""
        self.connection.send(message if isinstance(message, str | bytes) else json.dumps(message))

    def request(self, type_: str, **fields: Any) -> Message:
        """Send a message and return the answer to it: an ack or a pong."""
        id_ = self._send(type_, fields)
        while True:
            answer = self.acks.get(timeout=TIMEOUT_S)
            if answer.get("id") == id_:
                return answer

    def _send(self, type_: str, fields: Message) -> str:
        id_ = next(self._ids)
        self.send({"v": 1, "type": type_, "id": id_, **fields})
        return id_

    def activate(self, **credential: str) -> Message:
        """Send the first message, and return the session that the server begins."""
        answer = self.request("activate_extension", **credential, **ABOUT)
        assert answer["ok"], answer
        self.session = answer["result"]
        return self.session

    def sync(self, **state: Any) -> Message:
        """Send a complete state of one window."""
        window = {"windowId": 1, "type": "normal", "focused": True}
        complete = {"windows": [window], "groups": [], "tabs": [], "activeWindowId": 1, **state}
        return self.request("full_state_sync", seq=next(self._seqs), state=complete)

    def tab_event(self, kind: str, **fields: Any) -> Message:
        """Send a tab event."""
        return self.request("tab_event", seq=next(self._seqs), event={"kind": kind, **fields})

    def send_result(self, action: Message, **fields: Any) -> Message:
        """Send the result of an action and return the answer."""
        return self.request("browser_action_result", **_result(action, fields))

    @property
    def has_ended(self) -> bool:
        """Whether the server has closed the connection."""
        return not self._reader.is_alive()

    def close_code(self) -> int | None:
        """Return the code with which the server closes the connection."""
        self._reader.join(TIMEOUT_S)
        assert not self._reader.is_alive(), "the connection is open"
        return self.connection.close_code

    def _read(self) -> None:
        with suppress(ConnectionClosed):
            while True:
                message = json.loads(self.connection.recv())
                check(_schemas[message["type"]], message)
                if message["type"] in ("ack", "pong"):
                    self.acks.put(message)
                elif message["type"] == "browser_action":
                    self._act(message)
                elif message["type"] == "ping":
                    self.send({"v": 1, "type": "pong", "id": message["id"]})
                else:
                    self.received.put(message)

    def _act(self, action: Message) -> None:
        self.actions.append(action)
        if self.acknowledge:
            self.send({"v": 1, "type": "ack", "id": action["id"], "ok": True})
        fields = self.perform(action)
        if fields is not None:  # this thread would receive the answer, so it waits for none
            self._send("browser_action_result", _result(action, fields))


def _result(action: Message, fields: Message) -> Message:
    ids = {"actionId": action["actionId"], "taskId": action["taskId"]}
    return {**ids, "status": "error" if "error" in fields else "success", **fields}


@contextmanager
def open_browser(web: str, **options: Any) -> Iterator[ProtocolBrowser]:
    """Connect to a server, without activation."""
    address = web.replace("http", "ws", 1) + "/ws/plugin"
    options = {"origin": ORIGIN, "open_timeout": TIMEOUT_S, "close_timeout": 1.0, **options}
    with connect(address, **options) as connection:
        yield ProtocolBrowser(connection)


@contextmanager
def pair_browser(web: str, ticket: str) -> Iterator[ProtocolBrowser]:
    """Pair a browser, which stays connected for the length of the block."""
    with open_browser(web) as browser:
        browser.activate(ticket=ticket)
        yield browser
