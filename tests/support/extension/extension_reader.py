"""Call browser actions in a Chromium with the extension as the tests of the worker's browser do."""

from __future__ import annotations

import asyncio
import contextlib
import mimetypes
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from runners.actions.catalogue import ACTIONS
from runners.tools.base import ToolCall, ToolResult
from tests.support.browser.task_page import TaskPage
from tests.support.extension.extension_fixtures import ExtensionTask

Answer = TypeVar("Answer")
KINDS = {"image/jpeg": "screenshot"}


class _Page:
    def __init__(self, task: ExtensionTask) -> None:
        self._task = task

    @property
    def url(self) -> str:
        return self._task.current_url()

    async def evaluate(self, expression: str) -> Any:
        page = self._task.browser.page(self._task.current_url())
        try:
            return page.evaluate(_called(expression))
        finally:
            page.close()


class _Tab:
    def __init__(self, page: _Page) -> None:
        self.page = page


class ExtensionSession:
    """Has the tab in which the actions of a task work."""

    def __init__(self, task: ExtensionTask) -> None:
        self._page = _Page(task)

    @contextlib.asynccontextmanager
    async def run_tab(self) -> AsyncIterator[_Tab]:
        """Yield the current tab."""
        yield _Tab(self._page)


class ExtensionReader:
    """Calls actions; `saved` has the uploads, `uploads` the files for browser_upload."""

    def __init__(self, task: ExtensionTask) -> None:
        self.task = task
        self.session = ExtensionSession(task)
        self.saved: list[tuple[str, str, bytes]] = []
        self.uploads: dict[str, bytes] = {}
        self.trust = "local"

    def call(self, name: str, *, seconds: float = 80.0, **args: Any) -> ToolResult:
        """Perform an action as the server does, which validates its parameters and result."""
        action = ACTIONS[name]
        given = action.parameters.model_validate(args)
        params = given.model_dump(by_alias=True, exclude_unset=True)
        answer = self.task.perform(
            name, params, timeoutMs=action.timeout_ms, files=self._files(args.get("files", ()))
        )
        if answer["status"] == "error":
            error = answer["error"]
            return ToolResult(ok=False, error={"errorCode": error.pop("code"), **error})
        output = {**answer["result"], "warnings": answer.get("warnings", [])}
        output.pop("groupId", None)  # the worker's browser has no tab groups
        if "upload" in output:
            mime_type, data = self.task.server.files.uploads[f"/{answer['actionId']}"]
            assert output["upload"]["sizeBytes"] == len(data)
            assert output.pop("upload")["mimeType"] == mime_type
            self.saved.append((KINDS.get(mime_type, "file"), mime_type, data))
            output["artifactId"] = f"art_{len(self.saved)}"
        return ToolResult(ok=True, output=action.result.model_validate(output).as_output())

    def context(self, seconds: float = 40.0) -> ExtensionReader:
        """Return what `invoke_by_extension` takes as the context of a call."""
        return self

    def wait(self, work: Coroutine[Any, Any, Answer], seconds: float = 90.0) -> Answer:
        """Run a coroutine and return what it returns."""
        return asyncio.run(work)

    def _files(self, given: Any) -> list[dict[str, Any]]:
        found = []
        for file in given:
            name = file.get("artifactId") or file["path"]
            files = self.task.server.files
            files.files[f"/file/{name}"] = data = self.uploads[name]
            media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
            url = f"http://127.0.0.1:{files.server_port}/file/{name}"
            size = {"sizeBytes": len(data)}
            found.append({"fileName": name, "mediaType": media_type, "url": url, **size})
        return found


def _called(expression: str) -> str:
    """Return an expression in which a function is called, as Playwright does."""
    is_function = expression.lstrip().startswith(("() =>", "async () =>"))
    return f"({expression})()" if is_function else expression


async def invoke_by_extension(call: ToolCall, reader: ExtensionReader) -> ToolResult:
    """Perform an action as `runners.invocation.invoke` calls one."""
    return reader.call(call.name, **call.args)


def detach_debugger(page: TaskPage) -> None:
    """Detach the debugger without the extension's knowledge."""
    page("debugger_attach")
    browser = page.read.task.browser  # type: ignore[attr-defined]
    browser.evaluate(f"chrome.debugger.detach({{tabId: {page.tab_id}}})")


def lose_debugger_after(page: TaskPage, kind: str, *, is_answered: bool = False) -> None:
    """Let every command fail after input of this kind was sent, or was answered."""
    browser = page.read.task.browser  # type: ignore[attr-defined]
    browser.evaluate(
        f"""(() => {{
            const send = chrome.debugger.sendCommand;
            let isLost = false;
            chrome.debugger.sendCommand = async (target, method, params) => {{
                if (isLost) throw new Error("Debugger is not attached to the tab.");
                const answer = await send.call(chrome.debugger, target, method, params);
                if (params?.type !== "{kind}") return answer;
                isLost = true;
                if ({str(is_answered).lower()}) return answer;
                throw new Error("Debugger is not attached to the tab.");
            }};
            globalThis.restoreDebugger = () => {{ chrome.debugger.sendCommand = send; }};
        }})()"""
    )
