"""One tab of a session: navigate, call scripts in the page, take screenshots."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from runners.browser.errors import (
    ContextLost,
    browser_errors,
    browser_lost,
    download_failure,
    is_context_lost,
    is_document_gone,
    navigation_failure,
    no_answer,
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
from runners.browser.session.crashes import PageWatch, countdown
from runners.browser.session.downloads import Downloads
from runners.browser.session.frame_input import FrameInput
from runners.browser.session.refused_requests import RefusedRequests
from runners.browser.session.submit_watch import SubmitWatch
from runners.errors import NavigationFailed, NavigationTimeout, PageCrashed, ToolFailed

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Frame, Page, Request, Response

    from runners.network.failed_connections import FailedConnections

HANG_SECONDS = 5.0  # a page that does not answer for this long blocks the next navigation
BLOCKED_SECONDS = 10.0
CUT_SHORT = (
    "ERR_CONTENT_LENGTH_MISMATCH",
    "ERR_INCOMPLETE_CHUNKED_ENCODING",
    "ERR_CONNECTION_RESET",
    "ERR_CONNECTION_CLOSED",
)
WORLD = "continuity"  # the isolated world of all page scripts
LOST_SECONDS = 1.0  # for the answer after the document was replaced: it may never come
MAX_DOCUMENTS = 8
ImageFormat = Literal["jpeg", "png"]
SCREENSHOT_OPTIONS: Mapping[ImageFormat, dict[str, Any]] = {
    "jpeg": {"format": "jpeg", "quality": 60, "optimizeForSpeed": True},
    "png": {"format": "png"},
}


@dataclass(frozen=True, slots=True)
class Clip:
    """A part of a page in CSS pixels, from its top left; `scale` pixels of the image for each."""

    x: float
    y: float
    width: float
    height: float
    scale: float = 1.0
    is_beyond_viewport: bool = False


class Tab:
    """A page that is leased to one caller at a time.

    Times are `time.monotonic()` values.

    Attributes:
        page: Playwright's page.
        cdp: a CDP session of the page, for what Playwright does not offer.
        watch: answers its dialogs, closes its popups, and collects what it does by itself.
        run_id: the run for which the current document was opened.
        requested_url: the URL of the last `navigate`.
        used_at: when it was last leased.
        parsed_at: when the current document was parsed; None while it is not.
        documents: the number of documents (of the page, not of frames) that it has shown.
        shown_since: when the current document was committed.
        downloads: those that its page started.
        frame_input: whether its frames of other origins get input.
        windows_opened: how many windows that stay open the page has requested.
        stayed_at: when a navigation last returned no page; a download may be about to start.
        is_leaving: whether a navigation to another document has started and is not committed yet.
        submit_watch: watches what the page does since a form was about to be submitted.
    """

    def __init__(
        self,
        page: Page,
        cdp: CDPSession,
        frame_id: str,
        failed_connections: FailedConnections | None,
    ) -> None:
        self.page = page
        self.run_id = self._leased_for = ""
        self.requested_url = ""
        self.used_at = time.monotonic()
        self.parsed_at: float | None = None
        self.cdp = cdp
        self._frame_id = frame_id
        self.documents = 0
        self.shown_since = 0.0
        self.is_leaving = False
        self.stayed_at = 0.0
        self.windows_opened = 0
        self.submit_watch: SubmitWatch | None = None
        self._leaving_to = self._stay_notice = ""
        self._is_dirty = False
        self._committed = asyncio.Event()  # the document of the last `navigate`
        self._cut_short = asyncio.Future[ToolFailed]()  # why the document is never parsed
        self._global: str | None = None  # id of the isolated world's global object
        self.watch = PageWatch(page)
        self.frame_input = FrameInput(page)
        self.downloads = Downloads(cdp, self.watch.add_notice)
        # Requests of local sessions are never refused, so that nothing needs to be recorded.
        self._refusals = (
            RefusedRequests(page, failed_connections, self.watch.fail)
            if failed_connections
            else None
        )
        page.on("framenavigated", self._on_committed)
        page.on("domcontentloaded", self._on_parsed)
        page.on("requestfailed", self._on_failed_request)
        for event in ("frameRequestedNavigation", "frameStartedNavigating"):
            cdp.on(f"Page.{event}", lambda params: self._on_navigation(params, True))
        cdp.on("Page.windowOpen", self._on_window_open)
        cdp.on("Page.downloadWillBegin", self._on_download)
        cdp.on("Page.frameNavigated", self._on_document)
        cdp.on("Page.frameStoppedLoading", lambda params: self._on_navigation(params, False))

    @classmethod
    async def open(
        cls, context: BrowserContext, failed_connections: FailedConnections | None = None
    ) -> Tab:
        """Open a new page in the context; if the caller is cancelled, the page is closed.

        `failed_connections` are those of the context's proxy, if it has one.
        """
        return await cls.of_page(await context.new_page(), failed_connections)

    @classmethod
    async def of_page(cls, page: Page, failed_connections: FailedConnections | None = None) -> Tab:
        """Return the tab of an open page, as `open` does."""
        try:
            cdp = await page.context.new_cdp_session(page)
            tree = await cdp.send("Page.getFrameTree")
            await cdp.send("Page.enable")
            script = {"source": install_at_document_start(), "worldName": WORLD}
            await cdp.send("Page.addScriptToEvaluateOnNewDocument", script)
        except BaseException:
            await asyncio.shield(page.close())
            raise
        return cls(page, cdp, tree["frameTree"]["frame"]["id"], failed_connections)

    @property
    def is_alive(self) -> bool:
        """Whether the page is open, loaded or not."""
        return not (self.watch.is_lost or self.page.is_closed())

    def watch_submit(self, watch: SubmitWatch | None) -> None:
        """Watch the submit of a form in place of an earlier one; None: end the watch."""
        if self.submit_watch is not None:
            self.submit_watch.stop(self.page)
        self.submit_watch = watch
        if watch is not None:
            watch.start(self.page)

    @property
    def is_usable(self) -> bool:
        """Whether the tab can be leased again: it is alive and its navigation has ended."""
        return self.is_alive and not self._is_dirty

    def begin_lease(self, run_id: str) -> None:
        """Reset the counts of dialogs, popups and refused requests for the next caller."""
        self.used_at, self._leased_for = time.monotonic(), run_id
        if not self.requested_url:
            self.run_id = run_id  # else it still shows an earlier page
        self.watch.reset_counts()
        if self._refusals is not None:
            self._refusals.begin_lease()

    async def navigate(self, url: str, *, seconds: float) -> None:
        """Open a URL and return once its document is committed.

        Raises:
            NavigationTimeout, NavigationFailed, PageCrashed, InvalidTarget: As the browser reports.
            AddressNotAllowed: It is, or redirects to, an address that remote callers may not use.
            ToolFailed: details.reason is `download`, `too_many_dialogs` or `too_many_popups`.
        """
        if self.requested_url:
            # Sent before the navigation: while one is pending, a page answers nothing sent later.
            answering = asyncio.ensure_future(
                self.cdp.send("Runtime.evaluate", {"expression": "0"})
            )
            self.watch.run_in_background(self._fail_if_hanging(answering))
        self.requested_url, self.parsed_at, self._is_dirty = url, None, True
        self._committed.clear()
        self._expect_whole_document()
        if self._refusals is not None:
            self._refusals.begin_navigation()
        try:
            navigating = self.cdp.send("Page.navigate", {"url": url})
            answer = await self.watch.wait_for(navigating, countdown(seconds))
        except TimeoutError:
            raise no_answer(url, seconds) from None
        except browser_errors() as error:
            raise navigation_failure(str(error), url) from None
        if answer.get("loaderId"):
            self._global = None  # the event of the new document may still be on its way
        if answer.get("isDownload"):
            raise download_failure(url)
        if answer.get("errorText"):
            # The browser may still be loading its own error page, so the tab stays dirty.
            failure = navigation_failure(answer["errorText"], url)
            raise await self._refusals.explain(failure, url) if self._refusals else failure

    async def _fail_if_hanging(self, answering: asyncio.Future[Any]) -> None:
        """Declare the tab lost if its last page hangs, because that blocks the navigation."""
        try:
            progress = self._wait_for_answer_or_commit(answering)
            await self.watch.wait_for(progress, countdown(HANG_SECONDS))
        except TimeoutError:
            hanging = PageCrashed("The previous page of this tab hangs; the tab was closed.")
            self.watch.fail(hanging)

    async def _wait_for_answer_or_commit(self, answering: asyncio.Future[Any]) -> None:
        """Wait until the last page has answered, or, if it was replaced before, for the commit."""
        await asyncio.wait({answering})
        if answering.cancelled() or answering.exception() is not None:
            await self._committed.wait()

    async def status_of(self, url: str, *, seconds: float) -> int | None:
        """Open a URL again to get its HTTP status; some error responses have no page to read."""
        statuses: list[int] = []

        def on_response(response: Response) -> None:
            if response.request.is_navigation_request():
                statuses.append(response.status)

        self.page.on("response", on_response)
        try:
            await self.navigate(url, seconds=seconds)
        except NavigationFailed:
            pass
        finally:
            self.page.remove_listener("response", on_response)
        return statuses[-1] if statuses else None

    async def read(self, options: Mapping[str, Any], seconds_left: Callable[[], float]) -> str:
        """Read the current document, once it is parsed, and return JSON text.

        Raises:
            NavigationFailed: The connection closed in the middle of the document.
            ContextLost, TimeoutError, ToolFailed: As `call`.
        """
        return await self._call_early(READ, reader_script(), options, seconds_left)

    async def wait_for_document(self, wholly: bool, seconds_left: Callable[[], float]) -> str:
        """Wait until the current document is parsed, or `wholly` loaded.

        Returns the JSON text of page/document_ready.js; raises what `read` raises.
        """
        return await self._call_early(
            DOCUMENT_READY, document_ready_script(), {"wholly": wholly}, seconds_left
        )

    async def _call_early(
        self, name: str, script: str, given: object, seconds_left: Callable[[], float]
    ) -> str:
        """Call a function installed at document start; send it to a document that is older."""
        try:
            return str(await self.call(_call_installed(name), given, seconds_left, self._cut_short))
        except ScriptNotInstalled:
            return str(await self.call(script, given, seconds_left, self._cut_short))

    async def run_command(
        self, command: str, args: object = None, *, seconds: float
    ) -> dict[str, Any]:
        """Run a command of page/commands.js in the current document and return its answer.

        The first call in a document installs the script there.

        Raises:
            ContextLost: The page navigated to another document meanwhile.
            NavigationTimeout: The page did not answer in time because its script hangs.
            PageCrashed: The page is lost.
        """
        deadline, documents = time.monotonic() + seconds, self.documents

        def seconds_left() -> float:
            nonlocal deadline
            if self.documents != documents:
                deadline = min(deadline, self.shown_since + LOST_SECONDS)
            return deadline - time.monotonic()

        try:
            text = await self._call_action_script({"command": command, "args": args}, seconds_left)
        except TimeoutError:
            if self.documents != documents:
                raise ContextLost("the document was replaced before it answered") from None
            raise NavigationTimeout(
                "The page did not answer: its script hangs.", details={"url": self.page.url}
            ) from None
        answer: dict[str, Any] = json.loads(text)
        if "isStale" in answer:
            raise ContextLost("the located element was in the previous document")
        return answer

    async def run_in_documents(
        self,
        command: str,
        args: Callable[[], object],
        seconds_left: Callable[[], float],
    ) -> dict[str, Any]:
        """Run a command as `run_command`; if the page navigates meanwhile, in its next document.

        `args` and `seconds_left` are called before each attempt.

        Raises:
            NavigationTimeout: Also if it navigated MAX_DOCUMENTS times.
            PageCrashed: The page is lost.
        """
        for _ in range(MAX_DOCUMENTS):
            with contextlib.suppress(ContextLost):
                return await self.run_command(command, args(), seconds=seconds_left())
        raise NavigationTimeout(
            "The page keeps navigating to other documents.", details={"url": self.page.url}
        )

    async def _call_action_script(
        self, request: Mapping[str, Any], seconds_left: Callable[[], float]
    ) -> str:
        for _ in range(MAX_DOCUMENTS):
            try:
                return str(await self.call(_call_installed(ACT), request, seconds_left))
            except ScriptNotInstalled:
                await self.call(install_action_script(), None, seconds_left)
        raise ContextLost("the page keeps navigating to other documents")

    async def call(
        self,
        function: str,
        given: object,
        seconds_left: Callable[[], float],
        *failures: asyncio.Future[ToolFailed],
    ) -> Any:
        """Call a function in the isolated world of the current document and await its promise.

        Args:
            seconds_left: called repeatedly, so that the deadline can change while the page loads.
            failures: what else ends the call.

        Raises:
            ContextLost: The page navigated to another document meanwhile.
            ScriptNotInstalled: The function calls one that is not installed in the document.
            TimeoutError: The page did not answer in time; its script may be hanging.
            ToolFailed: The page crashed, was closed, or opened too many dialogs or popups.
        """
        calling = self._call_function(function, given)
        try:
            answer = await self.watch.wait_for(calling, seconds_left, *failures)
        except TimeoutError:
            raise
        except browser_errors() as error:
            if is_context_lost(error):
                raise ContextLost(str(error)) from None
            raise browser_lost() from None
        if "exceptionDetails" in answer:
            message = first_line(answer["exceptionDetails"])
            if is_not_installed(message):
                raise ScriptNotInstalled
            raise RuntimeError(f"page script: {message}")
        return answer["result"].get("value")

    async def _call_function(self, function: str, given: object) -> dict[str, Any]:
        request = {
            "functionDeclaration": function,
            "arguments": [{"value": given}],
            "awaitPromise": True,
            "returnByValue": True,
        }
        method = "Runtime.callFunctionOn"
        if self._global is not None:
            try:
                return await self.cdp.send(method, {**request, "objectId": self._global})
            except browser_errors() as error:
                if not is_document_gone(error):
                    raise
                self._global = None  # the document was gone before the call
        documents, world = self.documents, await self.world()
        calling = self.cdp.send(method, {**request, "executionContextId": world})
        answer, _ = await asyncio.gather(calling, self._store_global(world, documents))
        return dict(answer)

    async def _store_global(self, world: int, documents: int) -> None:
        """Store a handle of the isolated world's global object for later calls.

        The handle belongs to that world only, even when the page moves to another process.
        """
        expression = {"expression": "globalThis", "contextId": world}
        found = (await self.cdp.send("Runtime.evaluate", expression))["result"]
        if documents == self.documents:
            self._global = str(found["objectId"])

    async def world(self) -> int:
        """Return the execution context id of the isolated world in the current document.

        Raises what the browser raises.
        """
        params = {"frameId": self._frame_id, "worldName": WORLD}
        world = await self.cdp.send("Page.createIsolatedWorld", params)
        return int(world["executionContextId"])

    async def perform(self, work: Coroutine[Any, Any, Any], *, seconds: float) -> Any:
        """Await work on the page, such as input, while watching for the loss of the page.

        Raises:
            TimeoutError: The work did not finish in time; it may have had its effect.
            ToolFailed: The page is lost.
        """
        try:
            return await self.watch.wait_for(work, countdown(seconds))
        except TimeoutError:
            raise
        except browser_errors():
            raise browser_lost() from None

    async def terminate_script(self) -> None:
        """Terminate the script that runs in the page, so that a hanging page can be read."""
        ending = self.cdp.send("Runtime.terminateExecution")
        with contextlib.suppress(*browser_errors()):
            await self.watch.wait_for(ending, countdown(2.0))

    async def screenshot(
        self, *, seconds: float, image_format: ImageFormat = "jpeg", clip: Clip | None = None
    ) -> bytes:
        """Return an image of the viewport, or of a part of the page.

        Raises:
            TimeoutError: The page did not paint in time.
            PageCrashed: The page is gone.
        """
        options = dict(SCREENSHOT_OPTIONS[image_format])
        if clip is not None:
            options["captureBeyondViewport"] = clip.is_beyond_viewport
            area = {"x": clip.x, "y": clip.y, "width": clip.width, "height": clip.height}
            options["clip"] = {**area, "scale": clip.scale}
        capturing = self.cdp.send("Page.captureScreenshot", options)
        answer = await self.perform(capturing, seconds=seconds)
        return base64.b64decode(answer["data"])

    async def stop_loading(self) -> None:
        """Stop the page's loading; if it responds afterwards, the tab can be leased again."""
        try:
            await self.watch.wait_for(self.cdp.send("Page.stopLoading"), countdown(1.0))
            await self.call("() => 1", None, countdown(1.0))
        except browser_errors():
            return
        except (ContextLost, ToolFailed):
            return
        self._is_dirty = False

    async def blocked_warnings(self) -> list[str]:
        """Return a warning for each host that was refused to the page since the lease began.

        Raises:
            AddressNotAllowed: The page itself navigated to such a host.
        """
        if self._refusals is None:
            return []
        return await self.watch.wait_for(self._refusals.warnings(), countdown(BLOCKED_SECONDS))

    def reset_parsed(self) -> None:
        """Treat the document as not parsed: the page is navigating to another one by itself."""
        self.parsed_at = None

    def mark_settled(self) -> None:
        """Mark the navigation as ended: the tab may be leased again."""
        self._is_dirty = False

    async def close(self) -> None:
        """Close the page, even while it navigates or its script hangs."""
        await close_page(self.page, self._frame_id)

    def _on_navigation(self, params: dict[str, Any], is_leaving: bool) -> None:
        is_same = params.get("navigationType") in ("sameDocument", "historySameDocument")
        is_other_tab = params.get("disposition", "currentTab") != "currentTab"
        if params.get("frameId") != self._frame_id or is_same or is_other_tab:
            return
        if self.is_leaving and not is_leaving and self._leaving_to:
            self.stayed_at, self._stay_notice = time.monotonic(), _stay_notice(self._leaving_to)
            self.watch.add_notice(self._stay_notice)
        self._leaving_to = params.get("url", self._leaving_to)[:500] if is_leaving else ""
        self.is_leaving = is_leaving

    def _on_download(self, _: dict[str, Any]) -> None:
        if self.downloads.is_keeping:  # it is reported as a download
            self._leaving_to = ""
            self.watch.withdraw_notice(self._stay_notice)

    def _on_window_open(self, params: dict[str, Any]) -> None:
        if self.watch.keeps_popups:
            self.windows_opened += 1
            return
        url = f" with {params['url'][:500]}" if params.get("url", "").startswith("http") else ""
        self.watch.add_notice(f"The page opened a new window{url}, which was closed.")

    def _on_document(self, params: dict[str, Any]) -> None:
        if params.get("frame", {}).get("id") == self._frame_id:
            self.documents += 1
            self.shown_since = time.monotonic()
            self.run_id = self._leased_for
            self.is_leaving, self.parsed_at, self._global = False, None, None
            self._expect_whole_document()
            self._leaving_to = ""
            self.watch.answer_next_dialog(None)

    def _on_committed(self, frame: Frame) -> None:
        if frame.parent_frame is not None:
            return
        if self._refusals is not None:
            self._refusals.note_arrival()
        self._committed.set()

    def _on_parsed(self, _: Page) -> None:
        self.parsed_at = time.monotonic()

    def _expect_whole_document(self) -> None:
        # Not replaced if it is pending: the wait for a document may begin before its event.
        if self._cut_short.done():
            self._cut_short = asyncio.Future()

    def _on_failed_request(self, request: Request) -> None:
        """Fail waits for the document if its connection closed in the middle: a part of a page is
        never parsed to its end, and no other event follows.
        """
        failure = request.failure or ""
        if (
            failure.endswith(CUT_SHORT)
            and request.is_navigation_request()
            and request.frame == self.page.main_frame
            and self._committed.is_set()
            and self.parsed_at is None
            and not self.is_leaving  # else the next document failed, which is not committed
            and not self._cut_short.done()
        ):
            self._cut_short.set_result(navigation_failure(failure, request.url))
            self.watch.add_notice(_cut_notice(request.url[:500]))


def _stay_notice(url: str) -> str:
    return f"The page navigated to {url}, which returned no page: a download or an empty response."


def _cut_notice(url: str) -> str:
    return f"The connection closed in the middle of {url}: the page has only its beginning."


def _call_installed(name: str) -> str:
    """Return a function that calls one that is installed in the document."""
    return f"(given) => {name}(given)"
