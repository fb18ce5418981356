"""Every pair of transitions of the same runs at once, on PostgreSQL: no deadlock, and every row
agrees with the others afterwards. The repetition of a write after a deadlock is switched off.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from functools import partial

import pytest
from django.db import connection
from django.test import override_settings

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.database import repeat
from decisions.identity.principals import Principal, local_principal
from runs.queue.slots import ensure_slots
from runs.sessions.services import create_session
from tests.faults.installation import ROOT, FaultInstallation
from tests.faults.invariants import broken_invariants
from tests.support.runs.competing_actors import WEIGHTS, Actor, end_all_runs
from tests.support.runs.concurrent_calls import at_once

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has one lock for all rows"
)
ACTORS = 8
TIMES = 2  # of each transition, in the short test
SOAK_SECONDS = 600
# Few slots, and questions that expire soon: the actors meet more often.
FEW_SLOTS, SHORT_TTL_S = 4, 0.5
# A resume is rare, because people answer before their questions expire.
REQUIRED = WEIGHTS.keys() - {"resume"}


def count_deadlocks() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


def prepare(principal: Principal) -> None:
    ensure_slots()
    create_rule(RuleFields("confirm", tool="test_risk", reason="it is risky"), actor="t")
    create_session(principal=principal, name="shop")


def check(made: Counter[str], deadlocks: int) -> None:
    assert count_deadlocks() == deadlocks
    assert not [name for name in REQUIRED if made[name] < TIMES], made
    end_all_runs()
    assert broken_invariants() == []


def test_competing_transitions_cause_no_deadlock(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeat, "CONFLICTS", frozenset())
    with override_settings(MAX_CONCURRENT_RUNS=FEW_SLOTS, CONFIRM_TTL_S=SHORT_TTL_S):
        prepare(principal)
        deadlocks = count_deadlocks()
        actors = [Actor(seed) for seed in range(ACTORS)]
        until = time.monotonic() + 60

        def made() -> Counter[str]:
            return sum((actor.made for actor in actors), Counter())

        def is_over() -> bool:
            so_far = made()
            enough = all(so_far[name] >= TIMES for name in REQUIRED)
            return enough or time.monotonic() >= until

        at_once([partial(actor.act, is_over) for actor in actors])
        check(made(), deadlocks)


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS + 300)
def test_competing_processes_cause_no_deadlock_for_ten_minutes(
    installation: FaultInstallation,
) -> None:
    prepare(local_principal())
    deadlocks = count_deadlocks()
    env = {
        **installation.env,
        "CONTINUITY_MAX_CONCURRENT_RUNS": str(FEW_SLOTS),
        "CONTINUITY_CONFIRM_TTL_S": str(SHORT_TTL_S),
    }
    module = "tests.support.runs.competing_actors"
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", module, str(seed), str(SOAK_SECONDS)],
            env=env,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(ACTORS)
    ]
    made: Counter[str] = Counter()
    try:
        for process in processes:
            output, errors = process.communicate(timeout=SOAK_SECONDS + 120)
            assert process.returncode == 0, errors[-2000:]
            made += Counter(json.loads(output))
    finally:
        for process in processes:
            process.kill()
    check(made, deadlocks)
