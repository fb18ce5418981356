"""Lead WebGAL's engine to a scene, as its editor does.

The engine begins with start.txt, whatever its address says. It opens a WebSocket to the server that
it came from (`/api/webgalsync`), says there which scene it shows, and jumps where it is told to. On
our page we are that socket's other end: an editor that is open besides neither hears of this page
nor leads it elsewhere. Engines speak one of three forms; each is answered in its own.
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
CONNECT_SECONDS = 0.5  # for the engine to connect, once its page is at rest
ARRIVE_SECONDS = 8.0
AGAIN_SECONDS = 2.0  # its own first scene may arrive after a jump, and take its place
MAX_CHARS = 4 * 1024 * 1024  # of what the engine says, its whole stage among it
_JUMP = 0  # DebugCommand.JUMP
_FIRST = 1  # so many statements are run: the scene's first
_REGISTER, _SYNC = "session.register-preview", "preview.command.sync-scene"

Form = Callable[[str], Mapping[str, Any]]
_of_page: WeakKeyDictionary[Page, SceneJump | None] = WeakKeyDictionary()


class SceneJump:
    """Leads one page to a scene for the time of an `async with` block; it begins before the page is
    opened. Sockets that the page opens later go to their server.
    """

    def __init__(self, tab: Tab, scene: str) -> None:
        self._tab, self._scene = tab, f"{scene}.txt"
        self._socket: WebSocketRoute | None = None
        self._form: Form | None = None
        self._has_jumped = False
        self._connected, self._arrived = asyncio.Event(), asyncio.Event()

    async def __aenter__(self) -> Self:
        page = self._tab.page
        if page not in _of_page:
            work = page.route_web_socket(SOCKET, lambda socket: _take(page, socket))
            try:
                await self._tab.perform(work, seconds=ROUTE_SECONDS)
            except TimeoutError:
                raise WorkspaceTimeout("The page that was shown before hangs.") from None
        _of_page[page] = self
        return self

    async def __aexit__(self, *_: object) -> None:
        _of_page[self._tab.page] = None
        self._socket = None

    @property
    def is_engine_connected(self) -> bool:
        """Whether the page connected as the engine does."""
        return self._connected.is_set()

    async def wait_until_shown(self, *, seconds: float) -> bool:
        """Wait until the engine says that it shows the scene; tell whether it did.

        Args:
            seconds: at most; 8 s are enough for an engine.
        """
        end = time.monotonic() + min(seconds, ARRIVE_SECONDS)
        await _within(min(CONNECT_SECONDS, seconds), self._connected)
        while (
            self.is_engine_connected
            and not self._arrived.is_set()
            and (left := end - time.monotonic()) > 0
        ):
            if not await _within(min(AGAIN_SECONDS, left), self._arrived):
                self._jump()
        return self._arrived.is_set()

    def take(self, socket: WebSocketRoute) -> None:
        """Be the other end of a socket."""
        self._socket = socket
        self._connected.set()
        socket.on_message(self._hear)

    def _hear(self, message: str | bytes) -> None:
        if self._socket is None or len(message) > MAX_CHARS:
            return
        try:
            told = json.loads(message)
        except (ValueError, RecursionError):
            return  # some begin with a greeting
        match told:
            case {"kind": "request", "type": str(kind), "requestId": str(name)} if (
                kind == _REGISTER
            ):
                self._form = _as_request
                self._say({"kind": "response", "type": kind, "requestId": name, "payload": {}})
            case {"kind": "event", "payload": {"sceneName": str(scene)}}:
                self._note(scene)
            case {"data": {"sceneMsg": {"scene": str(scene)}}}:
                self._form = _in_envelope
                self._note(scene)
            case {"sceneMsg": {"scene": str(scene)}}:
                self._form = _bare
                self._note(scene)

    def _note(self, scene: str) -> None:
        if self._has_jumped and scene == self._scene:
            self._arrived.set()
        elif scene and not self._has_jumped:  # none yet: its own first scene is on its way
            self._jump()

    def _jump(self) -> None:
        if self._form is not None:
            self._has_jumped = True
            self._say(self._form(self._scene))

    def _say(self, told: Mapping[str, Any]) -> None:
        if self._socket is not None:
            self._socket.send(json.dumps(told))


def _take(page: Page, socket: WebSocketRoute) -> None:
    jump = _of_page.get(page)
    if jump is None:
        socket.connect_to_server()
    else:
        jump.take(socket)


async def _within(seconds: float, event: asyncio.Event) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await event.wait()
    return False


def _bare(scene: str) -> dict[str, Any]:
    where = {"scene": scene, "sentence": _FIRST}
    return {"command": _JUMP, "sceneMsg": where, "stageSyncMsg": {}, "message": "Sync"}


def _in_envelope(scene: str) -> dict[str, Any]:
    return {"event": "message", "data": _bare(scene)}


def _as_request(scene: str) -> dict[str, Any]:
    where = {"sceneName": scene, "sentenceId": _FIRST}
    return {"kind": "request", "type": _SYNC, "requestId": f"to {scene}", "payload": where}
