"""Make WebGAL's engine jump to a scene, with the messages that its editor uses.

The engine always begins with start.txt. It opens a WebSocket to its server (`/api/webgalsync`),
reports there which scene it shows, and accepts commands to jump. On this page the socket is routed
to this process instead, so an open editor neither receives the page's messages nor controls it.
There are three message formats, one per engine version; commands use the format received.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

from runners.browser.session.tab import Tab
from runners.workspace.errors import WorkspaceTimeout

if TYPE_CHECKING:
    from playwright.async_api import Page, WebSocketRoute

SOCKET = re.compile(r"^wss?://[^/]+/api/webgalsync$")
ROUTE_SECONDS = 10.0
CONNECT_SECONDS = 0.5  # for the engine to connect, once its page has loaded
ARRIVE_SECONDS = 8.0
RETRY_SECONDS = 2.0  # the engine may load its first scene after the jump, and replace the other
MAX_CHARS = 4 * 1024 * 1024  # of a message; it includes the engine's whole stage
_JUMP = 0  # DebugCommand.JUMP
_FIRST_STATEMENT = 1  # the engine runs the scene up to and including this statement
_REGISTER, _SYNC = "session.register-preview", "preview.command.sync-scene"

CommandFormat = Callable[[str], Mapping[str, Any]]
_jump_by_page: WeakKeyDictionary[Page, SceneJump | None] = WeakKeyDictionary()


class SceneJump:
    """Makes one page jump to a scene; an async context manager, entered before the page is opened.

    Sockets that the page opens after the block are connected to their server.
    """

    def __init__(self, tab: Tab, scene: str) -> None:
        self._tab, self._scene = tab, f"{scene}.txt"
        self._socket: WebSocketRoute | None = None
        self._format: CommandFormat | None = None
        self._has_jumped = False
        self._connected, self._arrived = asyncio.Event(), asyncio.Event()

    async def __aenter__(self) -> Self:
        page = self._tab.page
        if page not in _jump_by_page:
            work = page.route_web_socket(SOCKET, lambda socket: _route(page, socket))
            try:
                await self._tab.perform(work, seconds=ROUTE_SECONDS)
            except TimeoutError:
                raise WorkspaceTimeout("The page that was open before does not respond.") from None
        _jump_by_page[page] = self
        return self

    async def __aexit__(self, *_: object) -> None:
        _jump_by_page[self._tab.page] = None
        self._socket = None

    @property
    def is_engine_connected(self) -> bool:
        """Whether the page opened the engine's WebSocket."""
        return self._connected.is_set()

    async def wait_until_shown(self, *, seconds: float) -> bool:
        """Wait until the engine reports that it shows the scene; return whether it did.

        Args:
            seconds: upper limit; it waits for at most 8 s in any case.
        """
        end = time.monotonic() + min(seconds, ARRIVE_SECONDS)
        await _wait(min(CONNECT_SECONDS, seconds), self._connected)
        while (
            self.is_engine_connected
            and not self._arrived.is_set()
            and (left := end - time.monotonic()) > 0
        ):
            if not await _wait(min(RETRY_SECONDS, left), self._arrived):
                self._jump()
        return self._arrived.is_set()

    def attach(self, socket: WebSocketRoute) -> None:
        """Handle the messages of a socket that the page opened."""
        self._socket = socket
        self._connected.set()
        socket.on_message(self._on_message)

    def _on_message(self, message: str | bytes) -> None:
        if self._socket is None or len(message) > MAX_CHARS:
            return
        try:
            data = json.loads(message)
        except (ValueError, RecursionError):
            return  # some engines send a greeting that is not JSON
        match data:
            case {"kind": "request", "type": str(message_type), "requestId": str(request_id)} if (
                message_type == _REGISTER
            ):
                self._format = _as_request
                self._send(
                    {
                        "kind": "response",
                        "type": message_type,
                        "requestId": request_id,
                        "payload": {},
                    }
                )
            case {"kind": "event", "payload": {"sceneName": str(scene)}}:
                self._on_scene(scene)
            case {"data": {"sceneMsg": {"scene": str(scene)}}}:
                self._format = _in_envelope
                self._on_scene(scene)
            case {"sceneMsg": {"scene": str(scene)}}:
                self._format = _bare
                self._on_scene(scene)

    def _on_scene(self, scene: str) -> None:
        if self._has_jumped and scene == self._scene:
            self._arrived.set()
        elif scene and not self._has_jumped:  # without a scene, the first one is still loading
            self._jump()

    def _jump(self) -> None:
        if self._format is not None:
            self._has_jumped = True
            self._send(self._format(self._scene))

    def _send(self, message: Mapping[str, Any]) -> None:
        if self._socket is not None:
            self._socket.send(json.dumps(message))


def _route(page: Page, socket: WebSocketRoute) -> None:
    jump = _jump_by_page.get(page)
    if jump is None:
        socket.connect_to_server()
    else:
        jump.attach(socket)


async def _wait(seconds: float, event: asyncio.Event) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await event.wait()
    return False


def _bare(scene: str) -> dict[str, Any]:
    position = {"scene": scene, "sentence": _FIRST_STATEMENT}
    return {"command": _JUMP, "sceneMsg": position, "stageSyncMsg": {}, "message": "Sync"}


def _in_envelope(scene: str) -> dict[str, Any]:
    return {"event": "message", "data": _bare(scene)}


def _as_request(scene: str) -> dict[str, Any]:
    position = {"sceneName": scene, "sentenceId": _FIRST_STATEMENT}
    return {"kind": "request", "type": _SYNC, "requestId": f"to {scene}", "payload": position}
