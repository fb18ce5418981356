"""The changes that open pages of the admin receive: each topic to the viewers who may see it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client

from decisions.audit.record import AuditEvent, record
from decisions.foundation.infra.threads import in_thread
from decisions.identity.principals import Principal, ensure_workspace
from runs.admin import change_stream
from runs.admin.change_stream import Viewer, stream_changes, viewer_of
from runs.models import Run
from runs.queries import runs as queries_runs
from runs.streaming import changes, hub
from runs.streaming.changes import IDS, ChangeReader
from runs.streaming.long_poll import wait_run
from runs.submission.cancel import cancel_run
from tests.support.runs.event_streams import until

Submit = Callable[..., str]
ALL = Viewer(frozenset({"run", "task", "decision", "auditentry"}), True, True)
ASKS = {"type": "answer", "question": "Which account?", "expiresAt": 2_000_000_000_000}


@pytest.fixture
def boss(principal: Principal) -> Client:
    """Return a client that is signed in as a superuser."""
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    return client


async def messages(viewer: Viewer, client: Client) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the messages of a viewer's stream."""
    async with aclosing(stream_changes(viewer, client.session.session_key)) as lines:
        async for line in lines:
            if line.startswith(b"data: "):
                yield orjson.loads(line[6:])


async def first(viewer: Viewer, client: Client, accept: Callable[[dict[str, Any]], Any]) -> Any:
    """Return the first message that is accepted."""
    async with asyncio.timeout(30), aclosing(messages(viewer, client)) as found:
        async for message in found:
            if accept(message):
                return message
    raise AssertionError("the stream ended")


def audit(resource_type: str, resource_id: str) -> None:
    """Write an audit row."""
    workspace = ensure_workspace()
    scope = workspace.tenant_id, workspace.id
    record(AuditEvent(f"{resource_type}.created", "test", resource_type, resource_id, *scope))


def test_a_new_run_and_its_end_are_reported_with_its_id(
    submit: Submit, principal: Principal, boss: Client
) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(30), aclosing(messages(ALL, boss)) as found:
            await anext(found)
            run_id = await in_thread(submit)
            for act in (None, lambda: cancel_run(principal=principal, run_id=run_id)):
                if act is not None:
                    await in_thread(act)
                async for message in found:
                    if run_id in (message.get("changed", {}).get("run") or ()):
                        break

    asyncio.run(scenario())


def test_rows_of_the_audit_log_report_other_rows(boss: Client) -> None:
    viewer = Viewer(frozenset({"executiontarget", "auditentry"}), False, False)
    audit("target", "target_1")
    message = asyncio.run(first(viewer, boss, lambda got: "executiontarget" in got["changed"]))
    assert message["changed"] == {"executiontarget": ["target_1"], "auditentry": None}


def test_a_topic_that_the_viewer_may_not_see_is_not_sent(boss: Client) -> None:
    audit("token", "tok_1")
    audit("target", "target_1")
    viewer = Viewer(frozenset({"executiontarget"}), False, False)
    message = asyncio.run(first(viewer, boss, lambda got: got.get("changed")))
    assert message == {"changed": {"executiontarget": ["target_1"]}}


def test_a_user_sees_the_topics_whose_rows_he_may_view(principal: Principal) -> None:
    user = User.objects.create_user("staff", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_run"))
    viewer = viewer_of(User.objects.get(pk=user.pk))
    assert viewer == Viewer(frozenset({"run"}), False, False)


def test_a_waiting_question_is_sent_with_the_count(
    make_run: Callable[..., Run], boss: Client
) -> None:
    run = make_run(status="running", ready=False, waiting_for=ASKS)
    message = asyncio.run(first(ALL, boss, lambda got: "waiting" in got))
    assert message["waiting"] == {
        "count": 1,
        "rows": [
            {
                "key": f"{run.id}-2000000000000",
                "title": "Which account?",
                "url": f"/admin/runs/run/{run.id}/change/",
            }
        ],
    }


def test_a_viewer_of_decisions_alone_receives_no_question(
    make_run: Callable[..., Run], boss: Client
) -> None:
    make_run(status="running", ready=False, waiting_for=ASKS)
    viewer = Viewer(frozenset({"decision"}), decisions=True, questions=False)
    message = asyncio.run(first(viewer, boss, lambda got: "waiting" in got))
    assert message["waiting"] == {"count": 0, "rows": []}


def test_the_stream_ends_after_a_sign_out(boss: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_stream, "CHECK_S", 0.05)
    viewer = viewer_of(User.objects.get(username="boss"))
    SessionStore(boss.session.session_key).delete()

    async def read() -> list[dict[str, Any]]:
        async with asyncio.timeout(30):
            return [message async for message in messages(viewer, boss)]

    asyncio.run(read())  # it ends


def test_the_stream_goes_on_while_the_session_lasts(
    boss: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_stream, "CHECK_S", 0.05)
    monkeypatch.setattr(change_stream, "KEEP_ALIVE_S", 0.2)
    viewer = viewer_of(User.objects.get(username="boss"))

    async def read() -> None:
        async with asyncio.timeout(30):
            async with aclosing(stream_changes(viewer, boss.session.session_key)) as lines:
                async for line in lines:
                    if line.startswith(b": still there"):
                        return
        raise AssertionError("the stream ended")

    asyncio.run(read())


def test_many_changes_of_a_topic_are_sent_as_any() -> None:
    reader = ChangeReader(frozenset({"run"}))
    for number in range(IDS):
        reader.add("run", [f"run_{number}"])
    changed, _ = reader.take()
    assert len(changed["run"] or ()) == IDS
    for number in range(IDS + 2):
        reader.add("run", [f"run_{number}"])
    assert reader.take() == ({"run": None}, None)
    assert reader.take() == ({}, None)


def test_changes_are_read_only_while_a_page_of_the_admin_is_open(
    submit: Submit, principal: Principal, boss: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int | None] = []

    def read(last_id: int | None) -> list[tuple[int, str, str]]:
        reads.append(last_id)
        return []

    monkeypatch.setattr(changes, "_rows_after", read)
    run_id = submit()

    async def scenario() -> list[int]:
        await wait_run(principal=principal, run_id=run_id, wait_s=0.2)
        counts = [len(reads)]
        async with aclosing(messages(ALL, boss)) as found:
            await anext(found)
            await until(lambda: bool(reads))
        monkeypatch.setattr(changes, "POLL_S", 0.01)
        await asyncio.sleep(0.05)  # a read that has begun ends
        counts.append(len(reads))
        await wait_run(principal=principal, run_id=run_id, wait_s=0.2)
        return [*counts, len(reads)]

    before, opened, after = asyncio.run(scenario())
    assert before == 0 < opened == after


def test_an_event_hub_without_readers_makes_no_statement(
    submit: Submit, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "POLL_S", 0.02)
    polls: list[object] = []
    last_seqs = queries_runs.last_seqs

    def poll(ids: Sequence[str]) -> dict[str, int]:
        polls.append(ids)
        return last_seqs(ids)

    monkeypatch.setattr(queries_runs, "last_seqs", poll)
    run_id = submit()

    async def scenario() -> int:
        await wait_run(principal=principal, run_id=run_id, wait_s=0.3)
        await asyncio.sleep(0.1)  # the last query of the wait ends
        count = len(polls)
        await asyncio.sleep(0.3)
        return count

    count = asyncio.run(scenario())
    assert count == len(polls) > 0
