"""The extension in a real Chromium when connection, service worker, tab or debugger is lost."""

from __future__ import annotations

import time

import pytest

from tests.support.browser.page_server import PageServer, html
from tests.support.extension.extension_browser import ExtensionBrowser
from tests.support.extension.extension_fixtures import ExtensionTask
from tests.support.extension.extension_server import ExtensionServer
from tests.support.runs.waiting import wait_until

pytestmark = pytest.mark.slow
COUNTER = "<title>Counter</title><button id=b onclick='fetch(\"/count\")'>Count</button>"
FALLBACK = "real input was not available; synthetic events were used."


@pytest.fixture
def own_task(
    own_extension: tuple[ExtensionBrowser, ExtensionServer], page_server: PageServer
) -> ExtensionTask:
    """Return a task in a browser of its own, on a page whose button is counted by the server."""
    task = ExtensionTask(*own_extension)
    task.server.tasks = [{"taskId": task.task_id, "status": "running", "title": "T", "tabIds": []}]
    page_server.add("/count", "")
    task.start(page_server.add("/counter", COUNTER))
    return task


def hits(page_server: PageServer, path: str, *, at_least: int = 1) -> int:
    until = time.monotonic() + 10
    while page_server.hits[path] < at_least and time.monotonic() < until:
        time.sleep(0.02)
    return page_server.hits[path]


def test_an_action_during_which_the_connection_breaks_is_performed_once(
    own_task: ExtensionTask, page_server: PageServer
) -> None:
    server = own_task.server
    params = {"tabId": own_task.tab_id, "clickId": own_task.index()["Count"]}
    action = server.begin("browser_click", params, task_id=own_task.task_id)
    server.drop()
    server.wait_for_extension(2)
    first = server.result(action)
    server.begin("browser_click", params, task_id=own_task.task_id, actionId=action)
    assert server.result(action) == {**first, "id": server.received[-1]["id"]}
    assert hits(page_server, "/count") == 1


def test_a_result_that_was_not_acknowledged_is_sent_after_the_next_connection(
    own_task: ExtensionTask,
) -> None:
    server = own_task.server
    server.acks_results = False
    first = own_task.perform("browser_list_tabs", {})
    server.acks_results = True
    server.drop()
    server.wait_for_extension(2)
    again = server.result(first["actionId"])
    assert again["result"] == first["result"]


def test_an_action_whose_service_worker_died_is_not_repeated(
    own_task: ExtensionTask, page_server: PageServer
) -> None:
    server, browser = own_task.server, own_task.browser
    page_server.add("/slow-page", html("late", delay=3.0))
    params = {"url": page_server.url("/slow-page"), "reuseExistingTab": True}
    action = server.begin("task_start", params, task_id=own_task.task_id)
    assert server.result(action, "ack")["ok"]
    assert hits(page_server, "/slow-page") == 1
    browser.stop_worker()
    wake(browser, own_task.url)
    server.wait_for_extension(2)
    server.begin("task_start", params, task_id=own_task.task_id, actionId=action)
    error = server.result(action)["error"]
    assert (error["code"], error["details"]) == ("CDP_UNAVAILABLE", {"effect": "unknown"})
    assert page_server.hits["/slow-page"] == 1


def test_a_new_service_worker_knows_the_tabs_of_its_tasks(own_task: ExtensionTask) -> None:
    number = own_task.index()["Count"]
    own_task.browser.stop_worker()
    wake(own_task.browser, own_task.url)
    own_task.server.wait_for_extension(2)
    assert own_task("click", clickId=number)["strategy"] == "cdp_mouse"


def wake(browser: ExtensionBrowser, url: str) -> None:
    """Cause an event for which Chrome starts the service worker again: a tab changes."""
    browser.open_tab(f"{url}?another")


def test_a_rotated_secret_is_used_for_the_next_connection(own_task: ExtensionTask) -> None:
    server = own_task.server
    server.drop()
    server.wait_for_extension(2)
    used = [message["secret"] for message in server.of_type("activate_extension")]
    assert used == ["secret-0", "secret-1"]


def test_scripts_in_pages_read_nothing_of_the_pairing(own_task: ExtensionTask) -> None:
    read = "() => chrome.storage.local.get().then(() => 'read', () => 'refused')"
    target = f"{{target: {{tabId: {own_task.tab_id}}}, func: {read}}}"
    script = f"chrome.scripting.executeScript({target}).then(([{{ result }}]) => result)"
    assert own_task.browser.evaluate(script) == "refused"


def test_the_whole_state_is_sent_and_changes_follow(own_task: ExtensionTask) -> None:
    server = own_task.server
    state = server.wait_for(lambda message: message["type"] == "full_state_sync")["state"]
    assert state["windows"]
    assert own_task.perform("task_stop", {"closeTab": True})["status"] == "success"
    kinds = {"created", "updated", "removed", "groupCreated"}
    server.wait_for(lambda message: message.get("event", {}).get("kind") == "removed")
    assert kinds <= {message["event"]["kind"] for message in server.of_type("tab_event")}
    numbers = [message["seq"] for message in server.received if "seq" in message]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_closed_tab_is_reported_as_closed(
    extension_task: ExtensionTask, page_server: PageServer
) -> None:
    extension_task.start(page_server.url("/plain"))
    tab_id = extension_task.tab_id
    extension_task.browser.evaluate(f"chrome.tabs.remove({tab_id})")
    error = extension_task.error("observe")
    assert (error["code"], error["details"]) == ("TASK_TAB_CLOSED", {"tabId": tab_id})
    again = extension_task.start(page_server.url("/plain"))
    assert again["result"]["tabId"] != tab_id


def test_a_tab_of_the_person_or_of_another_task_is_refused(
    extension_task: ExtensionTask, page_server: PageServer
) -> None:
    extension_task.start(page_server.url("/plain"))
    own = extension_task.browser.evaluate("chrome.tabs.query({active: true}).then(([t]) => t.id)")
    other = ExtensionTask(extension_task.browser, extension_task.server)
    other.start(page_server.url("/plain"))
    for tab_id in (own, other.tab_id):
        error = extension_task.perform("browser_observe", {"tabId": tab_id})["error"]
        assert error["code"] == "INVALID_TASK_TAB"
        assert error["details"] == {"taskTabId": extension_task.tab_id}
    other.perform("task_stop", {"closeTab": True})


def test_the_products_own_pages_are_refused(
    extension_task: ExtensionTask, page_server: PageServer
) -> None:
    own = extension_task.server.origin
    error = extension_task.perform("task_start", {"url": f"{own}/admin/"})["error"]
    assert error["code"] == "INVALID_TARGET"
    framed = page_server.add("/framed", f"<title>F</title><iframe src='{own}/x'></iframe>")
    extension_task.start(framed)
    frames = f"chrome.webNavigation.getAllFrames({{tabId: {extension_task.tab_id}}})"
    is_framed = f"{frames}.then((all) => all.some(({{url}}) => url.startsWith('{own}')))"
    wait_until(lambda: bool(extension_task.browser.evaluate(is_framed)))
    assert extension_task.error("observe")["code"] == "INVALID_TARGET"


def test_without_the_debugger_a_script_acts_and_says_so(
    own_task: ExtensionTask, page_server: PageServer
) -> None:
    refuse_debugger(own_task.browser, "Cannot access this tab: the policy does not allow it.")
    number = own_task.index()["Count"]
    codes = ["CDP_UNAVAILABLE", "CDP_PERMISSION_DENIED"]  # the lost session, then a new one
    for code in codes:
        clicked = own_task("click", clickId=number)
        assert clicked["strategy"] == "dom_click"
        assert clicked["warnings"] == [f"{code}: {FALLBACK}"]
    assert hits(page_server, "/count", at_least=2) == 2
    assert own_task.error("debugger_attach")["code"] == "CDP_PERMISSION_DENIED"
    assert own_task.error("screenshot")["code"] == "CDP_PERMISSION_DENIED"
    assert "Count" in own_task("observe")["text"]


def refuse_debugger(browser: ExtensionBrowser, message: str) -> None:
    """Let Chrome refuse the debugger to the extension, as an administrator's policy does."""
    browser.evaluate(
        f"""(async () => {{
            for (const {{ tabId, attached }} of await chrome.debugger.getTargets())
                if (attached && tabId) await chrome.debugger.detach({{ tabId }}).catch(() => {{}});
            chrome.debugger.attach = async () => {{ throw new Error("{message}"); }};
            chrome.debugger.sendCommand = chrome.debugger.attach;
        }})()"""
    )


def test_no_action_shows_a_tab_or_a_window(
    extension_task: ExtensionTask, page_server: PageServer
) -> None:
    shown = "chrome.tabs.query({active: true}).then((tabs) => tabs.map((tab) => tab.id))"
    before = extension_task.browser.evaluate(shown)
    extension_task.start(page_server.add("/b", "<title>B</title><button id=b>B</button>"))
    extension_task("click", clickId=extension_task.index()["B"])
    extension_task("screenshot")
    extension_task("switch_tab")
    assert extension_task.browser.evaluate(shown) == before


def test_the_tabs_of_a_task_are_in_a_group_with_its_title(
    extension_task: ExtensionTask, page_server: PageServer
) -> None:
    started = extension_task.start(page_server.url("/plain"), groupTitle="Prices")
    group = extension_task.browser.evaluate(
        f"chrome.tabGroups.get({started['result']['groupId']}).then((group) => group.title)"
    )
    assert group == "Prices"


def test_an_upload_that_the_server_refuses_is_reported(
    extension_task: ExtensionTask, page_server: PageServer
) -> None:
    extension_task.start(page_server.url("/plain"))
    extension_task.server.files.upload_status = 403
    error = extension_task.error("get_html")
    extension_task.server.files.upload_status = 204
    assert (error["code"], error["details"]["httpStatus"]) == ("ARTIFACT_UPLOAD_FAILED", 403)


def test_a_page_of_the_browser_is_refused_until_the_task_leaves_it(
    extension_task: ExtensionTask, page_server: PageServer
) -> None:
    extension_task.start(page_server.url("/plain"))
    leaving = f"chrome.tabs.update({extension_task.tab_id}, {{url: 'chrome://version/'}})"
    extension_task.browser.evaluate(f"{leaving}.then(() => 1)")
    is_left = "chrome.tabs.get({}).then(({{url}}) => !url)"
    until = time.monotonic() + 10
    while not extension_task.browser.evaluate(is_left.format(extension_task.tab_id)):
        assert time.monotonic() < until
    for name in ("observe", "screenshot", "wait_for_loaded"):
        assert extension_task.error(name)["code"] == "INVALID_TARGET"
    url = page_server.url("/plain")
    assert extension_task.start(url, reuseExistingTab=True)["result"]["title"] == "Plain"


def test_a_page_that_cannot_be_opened_is_named_without_the_debugger_too(
    own_task: ExtensionTask, page_server: PageServer
) -> None:
    refuse_debugger(own_task.browser, "Cannot access this tab: the policy does not allow it.")
    own_task("click", xpath="//button")  # finds out that the debugger is lost
    params = {"url": page_server.url("/hang-up"), "reuseExistingTab": True}
    error = own_task.perform("task_start", params)["error"]
    assert error["details"]["netError"] == "ERR_EMPTY_RESPONSE"
    assert own_task.start(page_server.url("/plain"), reuseExistingTab=True)["result"]["url"]


def test_a_page_that_has_not_loaded_can_be_left_without_the_debugger(
    own_task: ExtensionTask, page_server: PageServer
) -> None:
    page_server.add("/late-image", html("late", delay=5.0))
    refuse_debugger(own_task.browser, "Cannot access this tab: the policy does not allow it.")
    own_task("click", xpath="//button")  # finds out that the debugger is lost
    own_task.start(page_server.add("/loads", "<title>L</title><img src=/late-image>"))
    assert own_task.start(page_server.url("/plain"), reuseExistingTab=True)["result"]["title"]


def test_an_empty_page_can_be_read(extension_task: ExtensionTask) -> None:
    started = extension_task.perform("task_start", {})
    extension_task.tab_id = started["result"]["tabId"]
    assert extension_task("observe")["url"] == "about:blank"
    assert extension_task("screenshot")["url"] == "about:blank"


def test_a_download_is_named_and_stays_the_persons(
    extension_task: ExtensionTask, page_server: PageServer
) -> None:
    extension_task.start(page_server.add("/files", "<title>F</title><a href=/report.zip>Get</a>"))
    clicked = extension_task("click", clickId=extension_task.index()["Get"])
    assert "report.zip" in clicked["warnings"][0]
    assert "downloads" not in clicked
