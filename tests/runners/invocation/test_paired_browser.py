"""Browser actions in a paired browser: every action's parameters, result and errors are as in
the worker's browser.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from artifacts.browser_files import FILE_PATH, open_shared_file
from runners.actions.catalogue import ACTIONS
from runners.actions.readability import INLINE_LIMIT_BYTES, TEXT_LIMIT_BYTES
from runners.errors import InvalidTarget
from runners.invocation import paired_browser
from runners.invocation.paired_browser import invoke_in_paired_browser
from runners.paired_browser.choice import PairedBrowser
from runners.paired_browser.dispatch import BrowserReply, SentAction
from runners.paired_browser.errors import BrowserAckTimeout, BrowserExecTimeout, BrowserOffline
from runners.tools.base import ToolCall, ToolContext, ToolResult
from tests.support.browser.paired_browser import SHOP, TAB, ScriptedBrowser, failed

ON_TAB = {"tabId": TAB}
ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "task_start": {"url": SHOP, "groupTitle": "Tea"},
    "task_stop": {"closeTab": True},
    "browser_list_tabs": {},
    "browser_click": {**ON_TAB, "clickId": 1},
    "browser_type": {**ON_TAB, "clickId": 4, "text": "Ada"},
    "browser_select": {**ON_TAB, "clickId": 4, "options": ["Tea"]},
    "browser_hover": {**ON_TAB, "clickId": 1},
    "browser_press_key": {**ON_TAB, "key": "Enter"},
    "browser_drag": {**ON_TAB, "clickId": 1, "toClickId": 2},
    "browser_scroll": {**ON_TAB, "screens": 1},
    "browser_find_text": {**ON_TAB, "text": "Tea"},
    "browser_wait_for_text": {**ON_TAB, "text": "Tea"},
    "browser_upload": {**ON_TAB, "clickId": 4, "files": [{"artifactId": "art_1"}]},
}
PRIVATE = "http://192.168.0.1"
Perform = Callable[..., ToolResult]


async def read_upload(*, artifact_id: str | None, path: str | None, limit: int) -> Any:
    """Return the file of each artifact, but of one that the caller may not read."""
    if artifact_id == "art_of_others":
        raise InvalidTarget("files: there is no artifact.")
    return "cv.pdf", b"%PDF-"


class Saved:
    """Stores artifacts in memory."""

    def __init__(self) -> None:
        self.artifacts: list[tuple[str, str, bytes]] = []

    async def __call__(self, data: bytes, *, name: str, mime_type: str, kind: str = "file") -> str:
        """Keep an artifact, and return its id."""
        self.artifacts.append((name, mime_type, data))
        return f"art_{len(self.artifacts)}"


@pytest.fixture
def saved() -> Saved:
    """Return the artifacts that actions stored."""
    return Saved()


@pytest.fixture
def perform(browser: ScriptedBrowser, saved: Saved) -> Perform:
    """Perform an action in the paired browser: `perform("browser_click", args)`."""

    def do(
        name: str,
        args: Mapping[str, Any] | None = None,
        expected_origin: str = "",
        **context: Any,
    ) -> ToolResult:
        fields = {"trust": "local", "deadline": time.monotonic() + 30, **context}
        ctx = ToolContext(
            run_id="run_1",
            save_artifact=saved,
            emit=lambda type_, data: None,
            read_upload=read_upload,
            **fields,
        )
        place = PairedBrowser(
            browser.client_id, "task_1", "Tea", "act_1", expected_origin=expected_origin
        )
        given = ARGUMENTS.get(name, ON_TAB) if args is None else args
        return asyncio.run(invoke_in_paired_browser(ToolCall(name, given), ctx, place))

    return do


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_each_action_is_sent_and_its_result_has_the_form_of_the_action(
    perform: Perform, browser: ScriptedBrowser, name: str
) -> None:
    result = perform(name)
    assert (result.ok, result.error) == (True, None)
    ACTIONS[name].result.model_validate(result.output)
    (sent,) = browser.sent
    assert (sent.name, sent.action_id, sent.task_title) == (name, "act_1", "Tea")
    assert ACTIONS[name].parameters.model_validate(sent.params)
    assert 0 < sent.timeout_ms <= ACTIONS[name].timeout_ms


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("browser_screenshot", ("screenshot.jpg", "image/jpeg")),
        ("browser_get_html", ("page.html", "text/html")),
    ],
)
def test_a_sent_result_becomes_an_artifact(
    perform: Perform, saved: Saved, name: str, file: tuple[str, str]
) -> None:
    output = perform(name).output
    assert (output["artifactId"], "upload" in output) == ("art_1", False)
    assert saved.artifacts[0][:2] == file


@pytest.mark.parametrize(
    "wrong",
    [{"sha256": "0" * 64}, {"sizeBytes": 3}, {"mimeType": "text/html"}, {"sizeBytes": -1}],
    ids=["hash", "size", "type", "negative"],
)
def test_a_sent_result_that_is_not_as_named_is_not_stored(
    perform: Perform, browser: ScriptedBrowser, saved: Saved, wrong: Mapping[str, Any]
) -> None:
    def answer(action: SentAction) -> Mapping[str, Any]:
        sent = asyncio.run(browser.upload(action, b"picture", "image/jpeg"))
        return {"url": SHOP, "width": 1, "height": 1, "upload": {**sent, **wrong}}

    browser.replies["browser_screenshot"] = answer
    error = perform("browser_screenshot").error or {}
    assert (error["errorCode"], error["retryable"]) == ("ARTIFACT_UPLOAD_FAILED", True)
    assert not saved.artifacts


def test_a_result_that_was_never_sent_is_not_stored(
    perform: Perform, browser: ScriptedBrowser
) -> None:
    sent = {"sizeBytes": 1, "sha256": "0" * 64, "mimeType": "image/jpeg"}
    picture = {"url": SHOP, "width": 1, "height": 1, "upload": sent}
    browser.replies["browser_screenshot"] = BrowserReply("success", result=picture)
    error = perform("browser_screenshot").error or {}
    assert error["errorCode"] == "ARTIFACT_UPLOAD_FAILED"


@pytest.mark.parametrize(
    ("size", "fields"),
    [
        (INLINE_LIMIT_BYTES - 1, {"markdown"}),
        (INLINE_LIMIT_BYTES, {"artifactId"}),
        (TEXT_LIMIT_BYTES, {"artifactId"}),
    ],
)
def test_a_text_is_inline_below_the_limit(
    perform: Perform, browser: ScriptedBrowser, size: int, fields: set[str]
) -> None:
    text = {"markdown": "x" * size, "text": "x", "contentLengthBytes": size}
    browser.replies["browser_readability_extract"] = BrowserReply("success", result=text)
    output = perform("browser_readability_extract").output
    assert {"markdown", "artifactId", "text"} & output.keys() == fields
    assert (output["truncated"], output["contentLengthBytes"]) == ("artifactId" in fields, size)


def test_a_text_above_the_limit_is_an_error(perform: Perform, browser: ScriptedBrowser) -> None:
    text = {"markdown": "x" * (TEXT_LIMIT_BYTES + 1), "contentLengthBytes": 1}
    browser.replies["browser_readability_extract"] = BrowserReply("success", result=text)
    error = perform("browser_readability_extract").error or {}
    assert error["errorCode"] == "READABILITY_TOO_LARGE"


@pytest.mark.parametrize(
    "code",
    [
        "INVALID_TASK_TAB",
        "TASK_TAB_CLOSED",
        "INVALID_TARGET",
        "CDP_UNAVAILABLE",
        "CDP_PERMISSION_DENIED",
        "PAGE_PREP_FAILED",
        "READABILITY_TOO_LARGE",
        "ARTIFACT_UPLOAD_FAILED",
        "NAVIGATION_TIMEOUT",
        "ELEMENT_NOT_FOUND",
        "INVALID_PARAMETER",
        "PAGE_CRASHED",
    ],
)
def test_an_error_of_the_browser_keeps_its_code(
    perform: Perform, browser: ScriptedBrowser, code: str
) -> None:
    browser.replies["browser_click"] = failed(code, taskTabId=7)
    error = perform("browser_click").error or {}
    assert (error["errorCode"], error["details"]["taskTabId"]) == (code, 7)
    assert error["recovery"]


@pytest.mark.parametrize("code", ["TASK_BUSY", "BOOM", ""])
def test_an_unknown_error_of_the_browser_is_a_failure_of_the_action(
    perform: Perform, browser: ScriptedBrowser, code: str
) -> None:
    browser.replies["browser_click"] = failed(code)
    error = perform("browser_click").error or {}
    assert (error["errorCode"], error["retryable"]) == ("STEP_EXECUTION_FAILED", False)
    assert error["details"]["reason"] == (code or "unknown")
    assert error["details"]["effect"] == ("none" if code == "TASK_BUSY" else "unknown")


def test_a_page_that_the_browser_cannot_reach_is_not_said_to_be_unreachable_from_the_worker(
    perform: Perform, browser: ScriptedBrowser
) -> None:
    browser.replies["task_start"] = failed("STEP_EXECUTION_FAILED", netError="ERR_REFUSED")
    error = perform("task_start").error or {}
    assert "your paired browser" in error["recovery"]
    assert "worker" not in error["recovery"]


def test_input_that_was_lost_is_not_repeated(perform: Perform, browser: ScriptedBrowser) -> None:
    browser.replies["browser_click"] = failed("CDP_UNAVAILABLE", effect="unknown")
    error = perform("browser_click").error or {}
    assert (error["errorCode"], error["retryable"]) == ("CDP_UNAVAILABLE", False)


@pytest.mark.parametrize(
    ("failure", "code", "effect"),
    [
        (BrowserOffline("x"), "PLUGIN_OFFLINE", "none"),
        (BrowserAckTimeout("x"), "PLUGIN_TIMEOUT_ACK", "unknown"),
        (BrowserExecTimeout("x"), "PLUGIN_TIMEOUT_EXEC", "unknown"),
    ],
)
def test_a_browser_that_does_not_answer_is_reported(
    perform: Perform, browser: ScriptedBrowser, failure: Exception, code: str, effect: str
) -> None:
    browser.replies["browser_click"] = failure
    error = perform("browser_click").error or {}
    assert (error["errorCode"], error["retryable"]) == (code, True)
    assert error["details"]["effect"] == effect


@pytest.mark.parametrize(
    "result", [{"clicked": True}, {"clicked": True, "strategy": "magic"}, {"x": 1}, {}]
)
def test_a_result_of_another_form_is_refused(
    perform: Perform, browser: ScriptedBrowser, result: Mapping[str, Any]
) -> None:
    browser.replies["browser_click"] = BrowserReply("success", result=result)
    error = perform("browser_click").error or {}
    assert error["details"] == {"reason": "shape", "effect": "unknown"}


def test_a_partial_result_is_a_result_with_warnings(
    perform: Perform, browser: ScriptedBrowser
) -> None:
    clicked = {"clicked": True, "strategy": "dom_click", "warnings": ["a"]}
    browser.replies["browser_click"] = BrowserReply("partial", clicked, ["b"], ["title"])
    assert perform("browser_click").output["warnings"] == [
        "a",
        "b",
        "Missing in the result: title.",
    ]


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/admin/", "http://localhost:8000/"])
def test_the_products_own_pages_are_neither_opened_nor_read(
    perform: Perform, browser: ScriptedBrowser, url: str
) -> None:
    error = perform("task_start", {"url": url}).error or {}
    assert (error["errorCode"], browser.sent) == ("INVALID_TARGET", [])
    browser.url = url
    assert (perform("browser_observe").error or {})["errorCode"] == "INVALID_TARGET"


def test_a_remote_caller_reaches_no_private_address_of_the_person(
    perform: Perform, browser: ScriptedBrowser
) -> None:
    start = {"url": "http://192.168.0.1/"}
    assert perform("task_start", start).ok
    browser.sent.clear()
    error = perform("task_start", start, trust="remote").error or {}
    assert (error["errorCode"], browser.sent) == ("TRUST_LEVEL_NOT_ALLOWED", [])
    assert not perform("browser_observe", trust="remote").ok


@pytest.mark.parametrize("name", ["browser_find_text", "browser_dom_index", "browser_click"])
@pytest.mark.parametrize("field", ["url", "visited"])
def test_a_remote_caller_reads_nothing_of_a_private_page(
    perform: Perform, browser: ScriptedBrowser, name: str, field: str
) -> None:
    browser.url = SHOP
    assert perform(name, trust="remote").ok
    setattr(browser, field, PRIVATE if field == "url" else (PRIVATE,))
    error = perform(name, trust="remote").error or {}
    assert error["errorCode"] == "TRUST_LEVEL_NOT_ALLOWED"


@pytest.mark.parametrize(
    ("is_only_tab", "closing"),
    [(False, ["browser_close_tab"]), (True, ["browser_close_tab", "task_stop"])],
)
def test_a_tab_in_which_an_action_opened_a_private_page_is_closed(
    perform: Perform, browser: ScriptedBrowser, is_only_tab: bool, closing: list[str]
) -> None:
    redirected = {"tabId": TAB, "windowId": 1, "url": f"{PRIVATE}/"}
    browser.replies["task_start"] = lambda action: redirected
    if is_only_tab:
        browser.replies["browser_close_tab"] = failed("INVALID_PARAMETER")
    error = perform("task_start", trust="remote").error or {}
    assert (error["errorCode"], error["details"]["tabClosed"]) == ("TRUST_LEVEL_NOT_ALLOWED", True)
    assert browser.names[1:] == closing


def test_a_tab_with_a_private_page_that_an_action_only_reads_stays_open(
    perform: Perform, browser: ScriptedBrowser
) -> None:
    browser.url = PRIVATE
    assert not perform("browser_observe", trust="remote").ok
    assert browser.names == ["browser_observe"]


def test_a_remote_caller_gets_no_result_without_the_page_it_is_about(
    perform: Perform, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(action: SentAction) -> BrowserReply:
        return BrowserReply("success", result={"total": 0, "matches": []})

    monkeypatch.setattr(paired_browser, "perform_in_browser", answer)
    assert perform("browser_find_text").ok
    error = perform("browser_find_text", trust="remote").error or {}
    assert error["details"]["reason"] == "shape"


def test_a_remote_caller_is_shown_no_tab_of_a_private_page(
    perform: Perform, browser: ScriptedBrowser
) -> None:
    browser.url = SHOP
    tabs = [{"tabId": 1, "url": SHOP}, {"tabId": 2, "url": f"{PRIVATE}/", "title": "Router"}]
    browser.replies["browser_list_tabs"] = lambda action: {"tabs": tabs}
    assert len(perform("browser_list_tabs").output["tabs"]) == len(tabs)
    shown = perform("browser_list_tabs", trust="remote").output["tabs"]
    assert [tab["tabId"] for tab in shown] == [1]


def test_a_remote_caller_changes_nothing_on_a_private_page(
    perform: Perform, browser: ScriptedBrowser
) -> None:
    error = perform("browser_click", trust="remote", expected_origin=PRIVATE).error or {}
    assert (error["errorCode"], browser.sent) == ("TRUST_LEVEL_NOT_ALLOWED", [])


def test_an_uploaded_file_is_shared_by_a_signed_address(
    perform: Perform, browser: ScriptedBrowser
) -> None:
    assert perform("browser_upload").output["files"] == [{"fileName": "cv.pdf", "bytes": 5}]
    (file,) = browser.sent[0].files
    size_bytes, opened = open_shared_file(file["url"].rpartition(FILE_PATH)[2])
    with opened:
        assert (size_bytes, opened.read(), file["mediaType"]) == (5, b"%PDF-", "application/pdf")


def test_a_file_that_the_caller_may_not_read_is_not_sent(
    perform: Perform, browser: ScriptedBrowser
) -> None:
    args = {**ON_TAB, "clickId": 4, "files": [{"artifactId": "art_of_others"}]}
    error = perform("browser_upload", args).error or {}
    assert (error["errorCode"], error["details"], browser.sent) == (
        "INVALID_PARAMETER",
        {"effect": "none"},
        [],
    )


def test_no_action_is_sent_without_time(perform: Perform, browser: ScriptedBrowser) -> None:
    error = perform("browser_click", deadline=time.monotonic()).error or {}
    assert (error["details"], browser.sent) == ({"effect": "none"}, [])
