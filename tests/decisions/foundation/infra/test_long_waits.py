"""While calls wait for a reply or a hash, short calls of the same process are still answered."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, ClassVar

import pytest
from django.db import connections
from django.test import override_settings

from artifacts import uploads
from artifacts.models import ArtifactUpload
from artifacts.storage.staging import read_ticket
from decisions.chat import answers, responder
from decisions.chat.responder import ReplyRequest, compose_reply
from decisions.chat.services import chat
from decisions.foundation.infra.threads import in_long_thread, in_thread
from decisions.identity.principals import Principal
from decisions.models import ChatAnswer

TIMEOUT_S = 60  # limit for work that takes milliseconds, while waits would take longer
CALL = {"user_id": "alice", "message": "What is an index?", "idempotency_key": "k"}


class SlowResponder:
    """A responder that returns nothing before the test releases it."""

    released, started = threading.Event(), threading.Semaphore(0)
    messages: ClassVar[list[str]] = []

    def compose(self, decided: ReplyRequest) -> str:
        """Wait for the test, then return the reply."""
        SlowResponder.messages.append(decided.message)
        SlowResponder.started.release()
        SlowResponder.released.wait(TIMEOUT_S * 3)
        return "in my own words"


USE_SLOW_RESPONDER = override_settings(CONTINUITY_RESPONDER=f"{__name__}.SlowResponder")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set timeouts longer than the test, so that every call waits for the slow responder."""
    monkeypatch.setattr(responder, "TIMEOUT_S", TIMEOUT_S * 2)
    monkeypatch.setattr(answers, "TIMEOUT_S", TIMEOUT_S * 2)
    SlowResponder.released.clear()
    SlowResponder.started, SlowResponder.messages = threading.Semaphore(0), []
    yield
    SlowResponder.released.set()


async def answers_of_waiting_calls(*waiting: Coroutine[Any, Any, Any]) -> list[Any]:
    """Start the waiting calls, check that a short call is answered meanwhile, then release them;
    return their answers.
    """
    tasks = [asyncio.create_task(one) for one in waiting]
    await asyncio.to_thread(SlowResponder.started.acquire, timeout=TIMEOUT_S)
    with contextlib.suppress(TimeoutError):  # by then every call that is going to wait does so
        await asyncio.wait_for(asyncio.gather(*map(asyncio.shield, tasks)), 1)
    assert not any(task.done() for task in tasks)
    assert await asyncio.wait_for(in_thread(ChatAnswer.objects.count), TIMEOUT_S) >= 0
    SlowResponder.released.set()
    return await asyncio.wait_for(asyncio.gather(*tasks), TIMEOUT_S)


@USE_SLOW_RESPONDER
@pytest.mark.usefixtures("slow")
def test_many_calls_that_wait_for_a_reply_do_not_block_others(principal: Principal) -> None:
    calls = [{**CALL, "idempotency_key": f"k{n}", "user_id": f"u{n}"} for n in range(10)]
    replies = asyncio.run(
        answers_of_waiting_calls(*(chat(principal=principal, call=one) for one in calls))
    )
    assert {one["response"] for one in replies} == {"in my own words"}


@USE_SLOW_RESPONDER
@pytest.mark.usefixtures("slow")
def test_many_repeated_calls_that_wait_for_one_reply_do_not_block_others(
    principal: Principal,
) -> None:
    replies = asyncio.run(
        answers_of_waiting_calls(*(chat(principal=principal, call=CALL) for _ in range(12)))
    )
    assert all(one == replies[0] for one in replies)
    assert len(SlowResponder.messages) == 1


@USE_SLOW_RESPONDER
@pytest.mark.usefixtures("slow")
def test_a_repeated_call_gets_the_reply_after_the_first_caller_left(principal: Principal) -> None:
    async def cancel_and_repeat() -> dict[str, Any]:
        first = asyncio.create_task(chat(principal=principal, call=CALL))
        await asyncio.to_thread(SlowResponder.started.acquire, timeout=TIMEOUT_S)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        SlowResponder.released.set()
        return await chat(principal=principal, call=CALL)

    assert asyncio.run(cancel_and_repeat())["response"] == "in my own words"
    assert len(SlowResponder.messages) == 1


@USE_SLOW_RESPONDER
@pytest.mark.usefixtures("slow")
def test_a_responder_call_still_queued_at_its_timeout_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(responder, "TIMEOUT_S", 0.3)
    decided = ReplyRequest(mode="act", language="en", message="m", task_type="execution")
    busy = responder._pool._max_workers

    async def request_replies() -> None:
        replies = await asyncio.gather(*(compose_reply(decided) for _ in range(busy + 3)))
        assert set(replies) == {"It can be carried out."}

    asyncio.run(request_replies())
    SlowResponder.released.set()
    responder._pool.submit(int).result(TIMEOUT_S)  # every task queued before this one has started
    assert 0 < len(SlowResponder.messages) <= busy


@pytest.mark.usefixtures("slow")
def test_many_uploads_that_are_hashed_do_not_block_others(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = uploads._verify_and_promote

    def verify_slowly(upload: ArtifactUpload) -> None:
        SlowResponder.started.release()
        SlowResponder.released.wait(TIMEOUT_S * 3)
        original(upload)

    monkeypatch.setattr(uploads, "_verify_and_promote", verify_slowly)
    ids = [_upload(principal, str(number).encode()) for number in range(10)]
    replies = asyncio.run(
        answers_of_waiting_calls(
            *(uploads.complete_upload(principal=principal, upload_id=one) for one in ids)
        )
    )
    assert len({one["artifactId"] for one in replies}) == 10


def _upload(principal: Principal, data: bytes) -> str:
    upload = uploads.start_upload(
        principal=principal,
        name="a",
        mime_type="text/plain",
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        base_url="/",
    )
    receiving = uploads.receive_upload(
        ticket=read_ticket(upload["url"][1:]), body=io.BytesIO(data), mime_type="text/plain"
    )
    asyncio.run(receiving)
    return str(upload["uploadId"])


@pytest.mark.usefixtures("principal")
def test_long_work_leaves_no_connection_open() -> None:
    used = []

    def count_answers() -> int:
        used.append(connections["default"])
        return ChatAnswer.objects.count()

    assert asyncio.run(in_long_thread(count_answers)) == 0
    assert used[0].connection is None
