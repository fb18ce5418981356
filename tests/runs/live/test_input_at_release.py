"""A person's input while the agent's call is in flight, just before they release the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from decisions.foundation.infra.threads import in_thread
from decisions.identity.principals import Principal
from runs.conversations.services import resume_task, take_over_task
from runs.live.open_pages import register_page
from runs.live.page import LivePage
from tests.support.browser.page_actions import evaluate, open_markup
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.runs.waiting import wait_until


def text_input(text: str) -> dict[str, Any]:
    return message_with({"kind": "text", "text": text})


def message_with(event: Mapping[str, Any], trust: str = "local") -> dict[str, Any]:
    return {"kind": "input", "by": "me", "trust": trust, "events": [event]}


def test_input_still_pending_when_the_page_is_released_is_dropped(
    reader: Reader, page_server: PageServer, principal: Principal, make_task: Callable[..., str]
) -> None:
    messages: list[Mapping[str, Any]] = []

    async def publish(message: Mapping[str, Any]) -> None:
        messages.append(message)

    async def open_page() -> LivePage:
        return LivePage(task_id, publish)

    async def write_and_release() -> None:
        async with reader.session.takeover_tab():  # stands for a slow call of the agent
            await page.handle(text_input("b"))
            await in_thread(partial(resume_task, principal=principal, task_id=task_id))

    async def wait_for_tab() -> None:
        async with reader.session.takeover_tab():
            pass

    open_markup(reader, page_server, "<input id=f autofocus>")
    task_id = make_task("say hi")
    take_over_task(principal=principal, task_id=task_id)
    register_page(task_id, reader.session.run_id, reader.session)
    page = reader.wait(open_page())
    wait_until(lambda: any(one.get("mayAct") and one["page"] for one in messages))
    reader.wait(page.handle(text_input("a")))
    wait_until(lambda: evaluate(reader, "document.getElementById('f').value") == "a")
    reader.wait(write_and_release())
    reader.wait(wait_for_tab())
    assert evaluate(reader, "document.getElementById('f').value") == "a"
    reader.wait(page.close())


def test_a_remote_viewer_opens_no_private_address_in_a_local_callers_page(
    reader: Reader, page_server: PageServer, principal: Principal, make_task: Callable[..., str]
) -> None:
    messages: list[Mapping[str, Any]] = []

    async def publish(message: Mapping[str, Any]) -> None:
        messages.append(message)

    async def open_page() -> LivePage:
        return LivePage(task_id, publish)

    def is_refused() -> bool:
        return any(one["type"] == "live_problem" for one in messages)

    open_markup(reader, page_server, "<p>first")
    task_id = make_task("say hi")
    take_over_task(principal=principal, task_id=task_id)
    register_page(task_id, reader.session.run_id, reader.session)
    page = reader.wait(open_page())
    wait_until(lambda: any(one.get("mayAct") and one["page"] for one in messages))
    go = {"kind": "go", "to": page_server.url("/form")}
    reader.wait(page.handle(message_with(go, "remote")))
    wait_until(lambda: is_refused() or page_server.hits["/form"])
    assert is_refused()
    assert not page_server.hits["/form"]
    reader.wait(page.handle(message_with(go)))
    wait_until(lambda: page_server.hits["/form"] == 1)
    reader.wait(page.close())
