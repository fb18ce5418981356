"""One tab of a session: opening addresses, calling the reader in the page, taking its picture."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Literal

from runners.browser.errors import (
    ContextLost,
    browser_errors,
    browser_lost,
    download_failure,
    failure_of,
    is_context_lost,
    is_of_another_document,
)
from runners.browser.page_scripts import (
    ACT,
    DOCUMENT_READY,
    READ,
    ScriptNotInstalled,
    document_ready_script,
    first_line,
    install_action_script,
    install_at_document_start,
    is_not_installed,
    reader_script,
)
from runners.browser.session.closing import close_page
from runners.browser.session.crashes import PageWatch, within
from runners.browser.session.refused_requests import RefusedRequests
from runners.errors import NavigationFailed, NavigationTimeout, PageCrashed, ToolFailed

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Frame, Page, Response

    from runners.browser.session.crashes import DialogHandler
    from runners.network.failed_connections import FailedConnections

STALL_SECONDS = 2.5
BLOCKED_SECONDS = 10.0
WORLD = "continuity"
DOCUMENTS = 8
Picture = Literal["jpeg", "png"]
SHOTS: Mapping[Picture, dict[str, Any]] = {
    "jpeg": {"format": "jpeg", "quality": 60, "optimizeForSpeed": True},
    "png": {"format": "png"},
}


class Tab:
    """A page that is leased to one caller at a time.

    Attributes:
        page: Playwright's page, for what a tool does beyond reading.
        line: to the browser, for what Playwright has no words for.
        run_id: the run that the document it shows was opened for.
        requested_url: what it was last asked to open.
        used_at: `time.monotonic()` of its last lease.
        parsed_at: `time.monotonic()` when the document that was opened last was parsed, else None.
        documents: how many documents (of the page itself, not of frames) it has shown.
        shown_since: `time.monotonic()` when the last of them began to arrive.
        is_leaving: whether it was sent on to another document that has not begun to arrive.
    """

    def __init__(
        self, page: Page, line: CDPSession, frame_id: str, outcomes: FailedConnections | None
    ) -> None:
        self.page = page
        self.run_id = self._leased_for = ""
        self.requested_url = ""
        self.used_at = time.monotonic()
        self.parsed_at: float | None = None
        self.line = line
        self._frame_id = frame_id
        self.documents = 0
        self.shown_since = 0.0
        self.is_leaving = False
        self._asked_for = ""
        self._is_dirty = False
        self._global: str | None = None
        self._looking: asyncio.TimerHandle | None = None
        self._watch = PageWatch(page)
        # Pages of local sessions are refused nothing, and pay for nobody who watches.
        self._refusals = RefusedRequests(page, outcomes, self._watch.fail) if outcomes else None
        page.on("framenavigated", self._note_committed)
        page.on("domcontentloaded", self._note_parsed)
        for event in ("frameRequestedNavigation", "frameStartedNavigating"):
            line.on(f"Page.{event}", lambda told: self._note_leaving(told, True))
        line.on("Page.windowOpen", self._note_window)
        line.on("Page.frameNavigated", self._note_document)
        line.on("Page.frameStoppedLoading", lambda told: self._note_leaving(told, False))

    @classmethod
    async def open(cls, context: BrowserContext, outcomes: FailedConnections | None = None) -> Tab:
        """Open a new page in the context; a caller that stops waiting leaves no page behind.

        `outcomes` are those of the proxy behind which the context is, if it is behind one.
        """
        page = await context.new_page()
        try:
            line = await context.new_cdp_session(page)
            tree = await line.send("Page.getFrameTree")
            await line.send("Page.enable")
            early = {"source": install_at_document_start(), "worldName": WORLD}
            await line.send("Page.addScriptToEvaluateOnNewDocument", early)
        except BaseException:
            await asyncio.shield(page.close())
            raise
        return cls(page, line, tree["frameTree"]["frame"]["id"], outcomes)

    @property
    def is_alive(self) -> bool:
        """Whether the page is still there, at rest or not."""
        return not (self._watch.is_lost or self.page.is_closed())

    @property
    def dialogs(self) -> list[str]:
        """What the page asked in dialogs since the lease began; all were answered with no."""
        return self._watch.dialogs

    def take_notices(self) -> list[str]:
        """Return what the page did by itself since this was asked last, a sentence each."""
        return self._watch.take_notices()

    def set_dialog_handler(self, answerer: DialogHandler | None) -> None:
        """Have somebody answer the page's dialogs from now on; None: they are answered with no."""
        self._watch.reset_counts()
        self._watch.answerer = answerer

    @property
    def is_usable(self) -> bool:
        """Whether the tab can be leased again: alive, and at rest."""
        return self.is_alive and not self._is_dirty

    def begin_lease(self, run_id: str) -> None:
        """Count dialogs and popups anew for the next caller."""
        self.used_at, self._leased_for = time.monotonic(), run_id
        if not self.requested_url:
            self.run_id = run_id  # else it still shows what it was asked for before
        self._watch.reset_counts()
        if self._refusals is not None:
            self._refusals.begin_lease()

    async def navigate(self, url: str, *, seconds: float) -> None:
        """Open an address and return as soon as its document begins to arrive.

        Raises:
            NavigationTimeout, NavigationFailed, PageCrashed, InvalidTarget: as the browser reports.
            AddressNotAllowed: It is, or leads to, an address that is not for remote callers.
            ToolFailed: details.reason is `download`, `too_many_dialogs` or `too_many_popups`.
        """
        if self.requested_url:
            loop = asyncio.get_running_loop()
            self._looking = loop.call_later(STALL_SECONDS, self._look_after_last_page)
        self.requested_url, self.parsed_at, self._is_dirty = url, None, True
        if self._refusals is not None:
            self._refusals.begin_navigation()
        try:
            going = self.line.send("Page.navigate", {"url": url})
            answer = await self._watch.watch(going, within(seconds))
        except TimeoutError:
            late = "The page did not arrive in time."
            raise NavigationTimeout(late, details={"url": url}) from None
        except browser_errors() as error:
            raise failure_of(str(error), url) from None
        if answer.get("loaderId"):
            self._global = None  # also where the word of the new document is still on its way
        if answer.get("isDownload"):
            raise download_failure(url)
        if answer.get("errorText"):
            # The browser may still be putting an error page of its own there: it stays dirty.
            failure = failure_of(answer["errorText"], url)
            raise await self._refusals.explain(failure, url) if self._refusals else failure

    def _look_after_last_page(self) -> None:
        self._watch.do(self._check_last_page())

    async def _check_last_page(self) -> None:
        """Give the tab up when its last page hangs, which keeps the next one from coming."""
        question = {"expression": "0"}
        try:
            asking = self.line.send("Runtime.evaluate", question)
            await self._watch.watch(asking, within(STALL_SECONDS))
        except TimeoutError:
            hangs = PageCrashed("The page that this tab showed before hangs; it was closed.")
            self._watch.fail(hangs)

    async def status_of(self, url: str, *, seconds: float) -> int | None:
        """Open an address once more for its HTTP status: some answers give no page to ask."""
        statuses: list[int] = []

        def note(response: Response) -> None:
            if response.request.is_navigation_request():
                statuses.append(response.status)

        self.page.on("response", note)
        try:
            await self.navigate(url, seconds=seconds)
        except NavigationFailed:
            pass
        finally:
            self.page.remove_listener("response", note)
        return statuses[-1] if statuses else None

    async def read(self, options: Mapping[str, Any], seconds_left: Callable[[], float]) -> str:
        """Return the reading of the present document, as JSON text; raises what `call` raises."""
        return await self._call_early(READ, reader_script(), options, seconds_left)

    async def wait_for_document(self, wholly: bool, seconds_left: Callable[[], float]) -> str:
        """Wait until the present document is parsed, or loaded `wholly`, and return what
        page/arrived.js tells of it, as JSON text; raises what `call` raises.
        """
        return await self._call_early(
            DOCUMENT_READY, document_ready_script(), {"wholly": wholly}, seconds_left
        )

    async def _call_early(
        self, name: str, script: str, given: object, seconds_left: Callable[[], float]
    ) -> str:
        """Call what documents have from their beginning; one that was there before is sent it."""
        try:
            return str(await self.call(_laid_out(name), given, seconds_left))
        except ScriptNotInstalled:
            return str(await self.call(script, given, seconds_left))

    async def act(self, request: Mapping[str, Any], seconds_left: Callable[[], float]) -> str:
        """Have the actor do something in the present document, and return its answer as JSON text;
        raises what `call` raises. The first time in a document it is sent there.
        """
        for _ in range(DOCUMENTS):
            try:
                return str(await self.call(_laid_out(ACT), request, seconds_left))
            except ScriptNotInstalled:
                await self.call(install_action_script(), None, seconds_left)
        raise ContextLost("the page keeps going on to another document")

    async def call(self, function: str, given: object, seconds_left: Callable[[], float]) -> Any:
        """Call a function in the reader's own world of the present document, await its promise.

        `seconds_left` is asked again while it waits, so that the end may come nearer when the page
        moves on.

        Raises:
            ContextLost: The page went on to another document meanwhile.
            ReaderMissing: The function calls what is not laid out in the document.
            TimeoutError: The page did not answer in time; its script may be hanging.
            ToolFailed: The page crashed, was closed or flooded its reader.
        """
        try:
            answer = await self._watch.watch(self._asked(function, given), seconds_left)
        except TimeoutError:
            raise
        except browser_errors() as error:
            if is_context_lost(error):
                raise ContextLost(str(error)) from None
            raise browser_lost() from None
        if "exceptionDetails" in answer:
            told = first_line(answer["exceptionDetails"])
            raise (
                ScriptNotInstalled
                if is_not_installed(told)
                else RuntimeError(f"page script: {told}")
            )
        return answer["result"].get("value")

    async def _asked(self, function: str, given: object) -> dict[str, Any]:
        request = {
            "functionDeclaration": function,
            "arguments": [{"value": given}],
            "awaitPromise": True,
            "returnByValue": True,
        }
        asking = "Runtime.callFunctionOn"
        if self._global is not None:
            try:
                return await self.line.send(asking, {**request, "objectId": self._global})
            except browser_errors() as error:
                if not is_of_another_document(error):
                    raise
                self._global = None  # that document was gone before the question came there
        documents, world = self.documents, await self.world()
        calling = self.line.send(asking, {**request, "executionContextId": world})
        answer, _ = await asyncio.gather(calling, self._hold(world, documents))
        return dict(answer)

    async def _hold(self, world: int, documents: int) -> None:
        """Keep a handle of the world's global object for later calls; it is of that world and no
        other, also when the page goes on to another process.
        """
        asked = {"expression": "globalThis", "contextId": world}
        found = (await self.line.send("Runtime.evaluate", asked))["result"]
        if documents == self.documents:
            self._global = str(found["objectId"])

    async def world(self) -> int:
        """Return the id of the reader's own world in the present document; raises what the browser
        does.
        """
        where = {"frameId": self._frame_id, "worldName": WORLD}
        made = await self.line.send("Page.createIsolatedWorld", where)
        return int(made["executionContextId"])

    async def perform(self, work: Coroutine[Any, Any, Any], *, seconds: float) -> Any:
        """Do something with the page's mouse or keyboard.

        Raises:
            TimeoutError: The page did not take it in time; what it was may have had its effect.
            ToolFailed: The page is lost.
        """
        try:
            return await self._watch.watch(work, within(seconds))
        except TimeoutError:
            raise
        except browser_errors():
            raise browser_lost() from None

    async def terminate_script(self) -> None:
        """End the script that hangs in the page, if one does, so that the page can be read."""
        ending = self.line.send("Runtime.terminateExecution")
        with contextlib.suppress(*browser_errors()):
            await self._watch.watch(ending, within(2.0))

    async def screenshot(
        self, *, seconds: float, picture: Picture = "jpeg", height: float | None = None
    ) -> bytes:
        """Return the viewport as a picture, or the page down to a `height` in CSS pixels.

        Raises:
            TimeoutError: The page did not paint in time.
            PageCrashed: The page is gone.
        """
        how = dict(SHOTS[picture])
        if height is not None:
            width = (self.page.viewport_size or {"width": 1280})["width"]
            how["captureBeyondViewport"] = True
            how["clip"] = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        painting = self.line.send("Page.captureScreenshot", how)
        answer = await self.perform(painting, seconds=seconds)
        return base64.b64decode(answer["data"])

    async def stop_loading(self) -> None:
        """Stop what the page still loads; when it obeys, the tab can be used again."""
        try:
            await self._watch.watch(self.line.send("Page.stopLoading"), within(1.0))
            await self.call("() => 1", None, within(1.0))
        except browser_errors():
            return
        except (ContextLost, ToolFailed):
            return
        self._is_dirty = False

    async def blocked_warnings(self) -> list[str]:
        """Return what the page was refused since its lease began, a sentence a host.

        Raises:
            AddressNotAllowed: The page itself went on to such an address.
        """
        if self._refusals is None:
            return []
        return await self._watch.watch(self._refusals.warnings(), within(BLOCKED_SECONDS))

    def reset_parsed(self) -> None:
        """Await another document: the page went on to one by itself."""
        self.parsed_at = None

    def mark_settled(self) -> None:
        """Declare the navigation over: the tab may be leased again."""
        self._is_dirty = False

    async def close(self) -> None:
        """Close the page, whatever it is doing."""
        await close_page(self.page, self._frame_id)

    def _note_leaving(self, told: dict[str, Any], is_leaving: bool) -> None:
        is_same = told.get("navigationType") in ("sameDocument", "historySameDocument")
        is_elsewhere = told.get("disposition", "currentTab") != "currentTab"
        if told.get("frameId") != self._frame_id or is_same or is_elsewhere:
            return
        if self.is_leaving and not is_leaving and self._asked_for:
            where = f"{self._asked_for} gave no page: a file to keep, perhaps, or nothing."
            self._watch.note(f"The page was sent on, and {where}")
        self._asked_for = told.get("url", self._asked_for)[:500] if is_leaving else ""
        self.is_leaving = is_leaving

    def _note_window(self, told: dict[str, Any]) -> None:
        where = f" on {told['url'][:500]}" if told.get("url", "").startswith("http") else ""
        self._watch.note(f"The page opened a window of its own{where}, which was closed.")

    def _note_document(self, told: dict[str, Any]) -> None:
        if told.get("frame", {}).get("id") == self._frame_id:
            self.documents += 1
            self.shown_since = time.monotonic()
            self.run_id = self._leased_for
            self.is_leaving, self.parsed_at, self._global = False, None, None
            self._asked_for = ""

    def _note_committed(self, frame: Frame) -> None:
        if frame.parent_frame is not None:
            return
        if self._refusals is not None:
            self._refusals.note_arrival()
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def _note_parsed(self, _: Page) -> None:
        self.parsed_at = time.monotonic()


def _laid_out(name: str) -> str:
    """Return a function that calls one which is laid out in the document."""
    return f"(given) => {name}(given)"
