"""A person takes over with a real mouse and keyboard; the agent's own input does not."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.support.extension.screen import require_screen
from tests.support.extension.visible_task import TASK, VisibleTask, visible_task

PAGE = """<!doctype html><title>Bicycles</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; frame-src 'self' data:">
<body><h1>Bicycles</h1><p><button>Show prices</button> <label>Search <input></label></p>
<p><a href="#below">Below</a></p>
<iframe srcdoc="<input placeholder=Inside>"></iframe>
<dialog style="width: 90%; height: 90%">
<form method="dialog"><button>Accept</button></form></dialog>"""
WORKING, TAKEN = "is working", "You have taken over"


@pytest.fixture(scope="module")
def shared_task(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VisibleTask]:
    require_screen()
    with visible_task(tmp_path_factory.mktemp("visible"), PAGE) as task:
        yield task


@pytest.fixture
def task(shared_task: VisibleTask) -> VisibleTask:
    """The task, which is running, with the mouse at rest in the page."""
    shared_task.status("takeover")
    shared_task.wait_for_overlay(TAKEN)
    shared_task.screen.move(shared_task.page, 400, 30)
    shared_task.status("running")
    shared_task.wait_for_overlay("")
    shared_task.perform("browser_dom_index")
    shared_task.server.received.clear()
    return shared_task


def test_a_real_click_during_an_action_takes_over_at_once(task: VisibleTask) -> None:
    action = task.server.begin(
        "browser_wait_for_text", {"tabId": task.tab_id, "text": "never", "timeoutMs": 2_000}
    )
    task.wait_for_overlay(WORKING)
    task.screen.do("click", 1)
    assert task.sent("takeover")["counts"] == {"clicks": 1}
    assert not task.server.of_type("browser_action_result")
    task.wait_for_overlay(TAKEN)
    assert task.server.result(action)["status"] == "error"  # it ended by itself


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "counts"),
    [(("key", "a"), {"keys": 1}), (("click", 5), {"wheels": 1}), (("click", 2), {"clicks": 1})],
)
def test_each_kind_of_real_input_takes_over(
    task: VisibleTask, words: tuple[object, ...], counts: dict[str, int]
) -> None:
    task.screen.do(*words)
    takeover = task.sent("takeover")
    assert (takeover["taskId"], takeover["reason"]) == (TASK, "input")
    assert takeover["counts"] == counts
    task.wait_for_overlay(TAKEN)


@pytest.mark.slow
def test_a_touch_takes_over(task: VisibleTask) -> None:
    # Of the test's own debugger, because the X server has no touch screen: the events are trusted,
    # and the extension has not announced them.
    task.page.send("Emulation.setTouchEmulationEnabled", enabled=True)
    point = {"x": 400, "y": 300}
    task.page.send("Input.dispatchTouchEvent", type="touchStart", touchPoints=[point])
    takeover = task.sent("takeover")
    assert (takeover["reason"], takeover["counts"]) == ("input", {"clicks": 1})
    task.wait_for_overlay(TAKEN)
    task.page.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    task.page.send("Emulation.setTouchEmulationEnabled", enabled=False)


@pytest.mark.slow
def test_a_movement_of_the_mouse_takes_over_without_a_count(task: VisibleTask) -> None:
    for _ in range(3):
        task.screen.do("mousemove_relative", 5, 4)
    assert "counts" not in task.sent("takeover")


@pytest.mark.slow
def test_the_agent_s_own_input_does_not_take_over(task: VisibleTask) -> None:
    elements = task.perform("browser_dom_index")["result"]["elements"]
    ids = {one["tag"]: one["clickId"] for one in elements}
    for click_id in [one["clickId"] for one in elements]:
        task.perform("browser_click", clickId=click_id)
        task.perform("browser_hover", clickId=click_id)
    task.perform("browser_type", clickId=ids["input"], text="racing bikes, größe 56 — 北京")
    task.perform("browser_press_key", key="ArrowLeft")
    task.perform("browser_scroll", to="bottom")
    task.perform("browser_drag", clickId=ids["button"], dx=40, dy=10)
    time.sleep(0.3)  # a false takeover would arrive a moment later
    assert not task.server.of_type("takeover")


@pytest.mark.slow
def test_a_mouse_at_rest_does_not_take_over_when_the_page_moves_under_it(task: VisibleTask) -> None:
    task.page.evaluate("document.body.style.marginTop = '300px'")
    task.page.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
    task.perform("browser_dom_index")
    task.page.evaluate("document.body.style.marginTop = ''")
    assert not task.server.of_type("takeover")


@pytest.mark.slow
def test_a_key_between_the_keys_that_the_agent_types_takes_over(task: VisibleTask) -> None:
    elements = task.perform("browser_dom_index")["result"]["elements"]
    field = next(one["clickId"] for one in elements if one["tag"] == "input")
    action = task.server.begin(
        "browser_type", {"tabId": task.tab_id, "clickId": field, "text": "bicycle " * 24}
    )
    task.wait_for_overlay(WORKING)
    task.screen.do("key", "b")  # a key that the agent types too
    assert task.sent("takeover")["counts"] == {"keys": 1}
    task.server.result(action)


@pytest.mark.slow
def test_the_person_s_input_is_counted_and_resume_gives_the_page_back(task: VisibleTask) -> None:
    task.screen.do("key", "a")
    task.wait_for_overlay(TAKEN)
    task.status("takeover")
    refused = task.server.begin("browser_dom_index", {"tabId": task.tab_id})
    assert task.server.result(refused, "ack")["error"]["code"] == "TASK_BUSY"
    task.screen.do("key", "s", "e", "c", "r", "e", "t")
    task.press_button("Resume")
    assert task.sent("activity")["counts"] == {"keys": 6}
    assert task.sent("resume")["taskId"] == TASK
    task.wait_for_overlay("")
    task.screen.do("mousemove_relative", 0, -60)  # the hand leaves the button
    task.perform("browser_dom_index")
    assert len(task.server.of_type("takeover")) == 1


@pytest.mark.slow
def test_stop_is_sent(task: VisibleTask) -> None:
    task.screen.do("key", "a")
    task.press_button("Stop")
    assert task.sent("stop")["taskId"] == TASK


@pytest.mark.slow
def test_a_takeover_outlives_the_service_worker(task: VisibleTask) -> None:
    task.screen.do("key", "a")
    task.sent("takeover")
    task.server.tasks = [{**task.server.tasks[0], "status": "takeover"}]
    before = task.server.activations
    task.browser.stop_worker()
    task.server.wait_for_extension(before + 1)  # the page's content script starts it again
    task.wait_for_overlay(TAKEN)
    task.press_button("Resume")
    task.sent("resume")
    task.server.tasks = [{**task.server.tasks[0], "status": "running"}]


@pytest.mark.slow
def test_the_cancel_button_of_the_browser_s_banner_takes_over(task: VisibleTask) -> None:
    task.perform("browser_debugger_attach")
    banner = "[screenX, screenY + outerHeight - innerHeight - 28, outerWidth]"
    left, middle, width = task.page.evaluate(banner)
    for x in range(width // 2, width // 2 + 300, 20):  # where it is depends on the font
        task.screen.do("mousemove", left + x, middle, "click", 1)
        task.browser.evaluate("chrome.debugger.getTargets()")
        if task.server.of_type("takeover"):
            break
    assert task.sent("takeover")["reason"] == "debugger_canceled"
    task.wait_for_overlay(TAKEN)


@pytest.mark.slow
def test_the_agent_does_not_see_the_overlay(task: VisibleTask) -> None:
    task.page.evaluate("""globalThis.seen = new Set();
      new MutationObserver(() => seen.add(document.querySelector('continuity-overlay') !== null))
        .observe(document.documentElement, {childList: true}); undefined""")
    action = task.perform("browser_get_html", xpath="/html")["actionId"]
    html = task.server.files.uploads[f"/{action}"][1].decode()
    assert "Bicycles" in html
    assert "continuity" not in html
    assert "is working" not in json.dumps(task.perform("browser_observe"))
    task.perform("browser_screenshot")
    assert task.page.evaluate("[...seen]") == [False, True]  # it was taken out, and put back


@pytest.mark.slow
def test_the_overlay_lets_clicks_through_to_a_dialog_that_covers_the_page(
    task: VisibleTask,
) -> None:
    task.page.evaluate("document.querySelector('dialog').showModal()")
    elements = task.perform("browser_dom_index")["result"]["elements"]
    accept = next(one for one in elements if one.get("text") == "Accept")
    task.perform("browser_click", clickId=accept["clickId"])
    assert task.page.evaluate("document.querySelector('dialog').open") is False


@pytest.mark.slow
def test_a_person_reloads_a_page_that_was_there_before_the_watch(task: VisibleTask) -> None:
    task.browser.evaluate("chrome.scripting.unregisterContentScripts().then(() => 1)")
    task.page.evaluate("globalThis.isOld = true; location.reload()")
    while not task.page.evaluate("!globalThis.isOld && document.readyState === 'complete'"):
        time.sleep(0.02)
    refused = task.server.perform("browser_press_key", {"tabId": task.tab_id, "key": "a"})
    assert refused["error"]["details"]["reason"] == "not_watched"
    task.page.evaluate("globalThis.isOld = true")
    task.press_button("Reload page")
    while task.page.evaluate("Boolean(globalThis.isOld) || document.readyState !== 'complete'"):
        time.sleep(0.02)
    task.perform("browser_press_key", key="a")
    assert not task.server.of_type("takeover")


# A page that is there before any other listener: it keeps every event of input from them.
SWALLOWING = b"""<!doctype html><title>Swallowing</title><script>
for (const kind of ["pointerdown", "pointermove", "mousemove", "mousedown", "keydown", "input",
  "wheel", "pointerout", "touchstart"])
  for (const place of [window, document]) place.addEventListener(kind,
    (event) => event.stopImmediatePropagation(), {capture: true, passive: false});
</script><body style="height: 3000px"><iframe srcdoc="<p>Inside"></iframe>"""


@pytest.mark.parametrize(("words", "counts"), [(("key", "a"), {"keys": 1})])
def test_a_page_that_swallows_all_input_hides_none_of_it(
    task: VisibleTask, words: tuple[object, ...], counts: dict[str, int]
) -> None:
    task.server.files.files["/swallowing"] = SWALLOWING
    url = f"http://127.0.0.1:{task.server.files.server_port}/swallowing"
    started = task.server.perform("task_start", {"url": url, "reuseExistingTab": True})
    assert started["status"] == "success", started
    assert not task.server.of_type("takeover")  # by the page that is new under the resting mouse
    task.wait_until_drawn()
    task.screen.do(*words)
    takeover = task.sent("takeover")
    assert (takeover["reason"], takeover.get("counts")) == ("input", counts)
