"""Messages of a live page that a program with access to Redis captured and sends again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redis
from django.conf import settings

from decisions.foundation.security.sealed_messages import Inbox, seal_message
from decisions.identity.principals import Principal
from runs.conversations.services import take_over_task
from runs.live.broadcaster import PageBroadcaster
from runs.live.channel import WORKERS_CHANNEL, viewers_channel
from runs.live.open_pages import register_page
from tests.support.browser.page_actions import evaluate, open_markup
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.runs.waiting import wait_until


def test_input_that_is_sent_again_is_not_applied_again(
    reader: Reader, page_server: PageServer, principal: Principal, make_task: Callable[..., str]
) -> None:
    open_markup(reader, page_server, "<input id=f autofocus>")
    task_id = make_task("say hi")
    take_over_task(principal=principal, task_id=task_id)
    register_page(task_id, reader.session.run_id, reader.session)
    client: Any = redis.Redis.from_url(settings.REDIS_URL)
    viewers = client.pubsub(ignore_subscribe_messages=True)
    viewers.subscribe(viewers_channel(task_id))
    inbox = Inbox(viewers_channel(task_id))

    def sealed(**message: Any) -> bytes:
        return seal_message(WORKERS_CHANNEL, {"taskId": task_id, **message})

    def typed(text: str) -> bytes:
        return sealed(kind="input", by="me", events=[{"kind": "text", "text": text}])

    def may_act() -> bool:
        client.publish(WORKERS_CHANNEL, sealed(kind="watch"))
        received = viewers.get_message(timeout=1)
        return bool(received and (inbox.open(received["data"]) or {}).get("mayAct"))

    def value() -> str:
        return str(evaluate(reader, "document.getElementById('f').value"))

    async def serve() -> None:
        await PageBroadcaster().serve()

    serving = reader.loop.submit(serve())
    wait_until(may_act)
    first = typed("a")
    for message in (first, first, typed("b")):
        client.publish(WORKERS_CHANNEL, message)
    wait_until(lambda: "b" in value())
    assert value() == "ab"
    viewers.close()
    client.close()
    reader.wait(reader.session.close())
    serving.result(30)
