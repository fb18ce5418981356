"""Measure a decision of POST /chat for a user with 10 000 past events, against a floor: the bare
writes of the same request, in one transaction on the same connection.

On both databases, with fsync as in the product. The time covers the whole service: key,
conversation, intake, past, score, check, every row, the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from itertools import count
from typing import Any

from tests.benchmarks.rounds import alternate, ratio, report, spread
from tests.services import DurablePostgresServer, PostgresServer, served
from tests.support.decisions.gate_sets import own_set

EVENTS, CALLS = 10_000, 20
SLOTS = {"environment": "staging", "target": "orders", "success_criteria": "the count is reported"}
GOAL_MS = 30.0
_numbers = count()


def fill(owner: Any) -> None:
    """Give a user a history of different messages, one in twenty of them severe."""
    from decisions.chat.history.similarity import signature
    from decisions.models import Decision, Event

    texts = [labelled.text for labelled in own_set()]
    now = datetime.now(UTC)
    messages = [f"{texts[n % len(texts)]} (ticket {n})" for n in range(EVENTS)]
    rows = Decision.objects.bulk_create(
        [
            Decision(
                **owner.columns,
                principal_id="local",
                kind="chat",
                mode="act",
                subject_digest="0" * 64,
                created_at=now,
            )
            for _ in messages
        ],
        batch_size=500,
    )
    Event.objects.bulk_create(
        [
            Event(
                **owner.columns,
                decision=row,
                text=message,
                task_type="execution",
                impact={},
                signature=signature(message),
                confidence=0.8,
                irreversible=False,
                system_caused=False,
                cost=0.1,
                layer="L4" if n % 20 == 0 else "L1",
                created_at=now,
            )
            for n, (row, message) in enumerate(zip(rows, messages, strict=True))
        ],
        batch_size=500,
    )


def decide(principal: Any) -> None:
    """Have the service decide on one message."""
    from decisions.chat.services import chat

    number = next(_numbers)
    request = {
        "user_id": "alice",
        "idempotency_key": f"bench-{number}",
        "slots": SLOTS,
        "message": f"Count the rows of table number {number} and report it.",
    }
    answer = _loop().run_until_complete(chat(principal=principal, call=request))
    assert answer["trace"]["mode"] == "act"


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def write(owner: Any) -> None:
    """Write only the rows of one decision."""
    from django.db import transaction

    from decisions.audit.record import AuditEvent, record
    from decisions.memory.learning import Forecast
    from decisions.memory.outcomes import open_outcome
    from decisions.models import ChatAnswer, Conversation, Decision, Event

    number, now = next(_numbers), datetime.now(UTC)
    with transaction.atomic():
        owner.lock()
        answer = ChatAnswer.objects.create(
            workspace_id=owner.workspace_id,
            user_id=owner.user_id,
            call_digest="0" * 64,
            idempotency_key=f"floor-{number}",
            created_at=now,
        )
        decision = Decision.objects.create(
            **owner.columns,
            principal_id="local",
            kind="chat",
            mode="act",
            created_at=now,
            subject_digest="0" * 64,
        )
        Event.objects.create(
            **owner.columns,
            decision=decision,
            text="x" * 50,
            task_type="execution",
            impact={},
            signature=bytes(64),
            confidence=0.8,
            irreversible=False,
            system_caused=False,
            cost=0.1,
            layer="L1",
            created_at=now,
        )
        open_outcome(decision, Forecast({"time": -0.1}, 0.8, 0.1, "L1"))
        Decision.objects.filter(pk=decision.pk).update(trace={"trace_id": "trc"})
        record(
            AuditEvent(
                "decision.made",
                "local",
                "decision",
                str(decision.pk),
                owner.tenant_id,
                owner.workspace_id,
            )
        )
        Conversation.objects.create(
            **owner.columns, session_id=f"floor-{number}", created_at=now, updated_at=now
        )
        answer.answer = {"trace": {"l4_gate": "x" * 800}}
        answer.save(update_fields=["answer"])


def p50_ms(action: Callable[[], None]) -> float:
    """Return the median time of a call."""
    durations = []
    for _ in range(CALLS):
        started = time.perf_counter()
        action()
        durations.append((time.perf_counter() - started) * 1000)
    return statistics.median(durations)


def measure(database: str) -> None:
    """Measure on the database that the environment names, and report."""
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    from decisions.identity.principals import local_principal
    from decisions.memory.owner import Owner

    call_command("migrate", verbosity=0)
    principal = local_principal()
    owner = Owner(principal.tenant_id, principal.workspace_id, "alice")
    fill(owner)
    started = time.perf_counter()
    decide(principal)
    first_ms = (time.perf_counter() - started) * 1000
    measurements = alternate(
        {
            "ours": lambda: p50_ms(lambda: decide(principal)),
            "floor": lambda: p50_ms(lambda: write(owner)),
        }
    )
    connection.close()
    report(
        "chat_decision",
        database=database,
        past_events=EVENTS,
        ours_p50_ms=spread(measurements["ours"]),
        floor_p50_ms=spread(measurements["floor"]),
        ratio=ratio(measurements["ours"], measurements["floor"]),
        goal_ms=GOAL_MS,
        first_of_a_process_ms=round(first_ms, 1),
    )


@contextlib.contextmanager
def database(name: str) -> Iterator[dict[str, str]]:
    """Yield the environment of a fresh database."""
    with tempfile.TemporaryDirectory() as home:
        env = {
            **os.environ,
            "CONTINUITY_HOME": home,
            "CONTINUITY_SECRET_KEYS": "bench-" + "k" * 40,
            "DJANGO_SETTINGS_MODULE": "tests.lean_settings",
        }
        env.pop("DATABASE_URL", None)
        if name == "sqlite":
            yield env
            return
        with served(DurablePostgresServer, PostgresServer.make) as server:
            yield {**env, "DATABASE_URL": server.url}


def main() -> None:
    """Measure on both databases, each in a process of its own."""
    if len(sys.argv) > 1:
        measure(sys.argv[1])
        return
    for name in ("sqlite", "postgresql"):
        with database(name) as env:
            command = [sys.executable, "-m", "tests.benchmarks.chat_decision", name]
            subprocess.run(command, env=env, check=True)


if __name__ == "__main__":
    main()
