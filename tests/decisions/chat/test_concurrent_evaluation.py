"""A message is evaluated before its user's row is locked. The service detects changes made
meanwhile, and no other call waits for the evaluation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection

from decisions.chat import conversation, evaluation, services
from decisions.chat.history import retrieval
from decisions.chat.history.signatures import UserSignatures
from decisions.chat.history.similarity import signature
from decisions.identity.principals import Principal
from decisions.memory.objects import put_success_path
from decisions.memory.owner import Owner
from decisions.models import ChatAnswer, Decision, Event
from tests.support.decisions.continuity import HARMLESS, KNOWN_SLOTS, SUCCESS_PATH, SendChat
from tests.support.runs.concurrent_calls import at_once


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Run a function after the next message is drafted: `meanwhile(partial(send_chat, "…"))`."""
    pending: list[Callable[[], object]] = []

    def draft_then_run(*args: Any) -> evaluation.Draft:
        draft = evaluation.draft_reply(*args)
        if pending:
            pending.pop()()
        return draft

    monkeypatch.setattr(services, "draft_reply", draft_then_run)
    return pending.append


def test_a_message_is_evaluated_again_after_another_one_in_its_new_session(
    send_chat: SendChat, meanwhile: Callable[..., None]
) -> None:
    meanwhile(partial(send_chat, "How would I empty the orders table?", session_id="s"))
    assert send_chat("Yes, do it.", session_id="s")["trace"]["mode"] == "confirm"


def test_a_message_is_evaluated_again_after_another_one_in_its_known_session(
    send_chat: SendChat, meanwhile: Callable[..., None]
) -> None:
    send_chat(HARMLESS, session_id="s")
    meanwhile(partial(send_chat, "How would I empty the orders table?", session_id="s"))
    assert send_chat("Yes, do it.", session_id="s")["trace"]["mode"] == "confirm"
    assert Decision.objects.count() == 3


@pytest.mark.parametrize("before", [0, 1])
def test_an_l4_event_of_another_session_recorded_meanwhile_counts(
    send_chat: SendChat, meanwhile: Callable[..., None], before: int
) -> None:
    def record_l4_event() -> None:
        entry = send_chat(HARMLESS, session_id="other")["trace"]["entry_id"]
        Event.objects.filter(pk=entry).update(layer="L4")

    for _ in range(before):
        send_chat("Read the notes.")
    meanwhile(record_l4_event)
    gate = send_chat(HARMLESS, session_id="s")["trace"]["l4_gate"]
    assert (gate["hit"], gate["top"]) == (True, 1.0)


def test_an_l4_event_of_another_user_recorded_meanwhile_does_not_count(
    send_chat: SendChat, meanwhile: Callable[..., None]
) -> None:
    def send_others() -> None:
        entry = send_chat(HARMLESS, user_id="bob")["trace"]["entry_id"]
        Event.objects.filter(pk=entry).update(layer="L4")
        send_chat("Read the notes.", session_id="other")

    meanwhile(send_others)
    assert send_chat(HARMLESS, session_id="s")["trace"]["l4_gate"]["top"] == 0.0


def test_a_key_used_meanwhile_returns_the_stored_answer(
    send_chat: SendChat, meanwhile: Callable[..., None]
) -> None:
    first: list[dict[str, Any]] = []
    meanwhile(lambda: first.append(send_chat(HARMLESS, idempotency_key="one")))
    assert send_chat(HARMLESS, idempotency_key="one") == first[0]
    assert Decision.objects.count() == ChatAnswer.objects.count() == 1


def test_no_text_is_evaluated_while_the_user_is_locked(
    send_chat: SendChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, bool]] = []

    def watch(module: Any, name: str) -> None:
        original = getattr(module, name)

        def call(*args: Any, **options: Any) -> Any:
            done.append((name, connection.in_atomic_block))
            return original(*args, **options)

        monkeypatch.setattr(module, name, call)

    for module, name in (
        (conversation, "find_risk"),
        (conversation, "redact"),
        (retrieval, "signature"),
        (retrieval, "similarity"),
    ):
        watch(module, name)
    send_chat(HARMLESS)
    send_chat(HARMLESS)
    assert {name for name, _ in done} == {"find_risk", "redact", "signature", "similarity"}
    assert [one for one in done if one[1]] == []
    assert sum(name == "find_risk" for name, _ in done) == 2


def test_a_decision_takes_few_statements_and_fewer_under_the_lock(principal: Principal) -> None:
    call = {"user_id": "alice", "message": HARMLESS, "slots": KNOWN_SLOTS, "session_id": "s"}
    services.decide_on_call(principal=principal, call={**call, "idempotency_key": "one"})
    sent: list[bool] = []

    def record(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not sql.startswith("BEGIN"):
            sent.append(connection.in_atomic_block)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(record):
        services.decide_on_call(principal=principal, call={**call, "idempotency_key": "two"})
    assert (len(sent), sum(sent)) == (16, 9)


@pytest.mark.slow
def test_many_threads_read_a_users_past_once(send_chat: SendChat, principal: Principal) -> None:
    for number in range(30):
        send_chat(f"Count the rows of table {number}.")
    owner, past = Owner(principal.tenant_id, principal.workspace_id, "alice"), UserSignatures()
    signature_of_message = signature(HARMLESS)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # switch threads often, so that they interleave
    try:
        results = at_once(
            [partial(past.near, owner, signature_of_message, at_least=0.4, most=12)] * 12
        )
    finally:
        sys.setswitchinterval(before)
    assert all(one == results[0] for one in results)
    assert past.ids == sorted(set(past.ids))
    assert len(past.ids) == len(past.signatures) == 30


@pytest.mark.parametrize("intent", ["123", "[1]", "null", '{"a": 1}', "true"])
def test_an_intent_that_looks_like_json_is_a_text(
    send_chat: SendChat, principal: Principal, intent: str
) -> None:
    path = {**SUCCESS_PATH, "intent": intent, "name": "n"}
    put_success_path(principal=principal, call={"user_id": "alice", **path})
    assert send_chat(f"{intent} {intent}")["trace"]["best_success_path"]["name"] == "n"


def test_the_best_matching_of_many_success_paths_is_returned(
    send_chat: SendChat, principal: Principal
) -> None:
    for number in range(30):
        path = {
            **SUCCESS_PATH,
            "intent": f"Count the rows of table {number}",
            "name": f"path {number}",
        }
        put_success_path(principal=principal, call={"user_id": "alice", **path})
    best = send_chat("Count the rows of table 17")["trace"]["best_success_path"]
    assert best["name"] == "path 17"
