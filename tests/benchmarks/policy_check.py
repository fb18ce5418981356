"""Measure one policy evaluation, against a floor: one SELECT of one row by its key on the same
connection.

On SQLite in a temporary folder, with 1 and with 1000 rules in force.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable

from tests.benchmarks.rounds import alternate, ratio, report, spread

CALLS = 400
MANY = 1000


def _ms_each(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - started) * 1000 / CALLS


def _measure() -> dict[str, list[float]]:
    from django.db import connection

    from decisions.authorization.policy import current_policy
    from decisions.authorization.policy_rules import RuleFields, create_rule
    from decisions.identity.principals import local_principal
    from runners.targets.targets import Caller

    principal = local_principal()

    def select() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT stamp FROM decisions_policystamp WHERE id = 1")
            cursor.fetchone()

    def evaluate_policy() -> None:
        current_policy(Caller.of(principal)).evaluate("submit_form", None)

    create_rule(RuleFields("confirm", tool="submit_form", reason="test"), actor="bench")
    one = alternate({"floor": lambda: _ms_each(select), "one": lambda: _ms_each(evaluate_policy)})
    for number in range(MANY):
        create_rule(RuleFields("allow", tool=f"tool_{number}", reason="test"), actor="bench")
    many = alternate({"floor": lambda: _ms_each(select), "many": lambda: _ms_each(evaluate_policy)})
    return {
        "floor": one["floor"],
        "one": one["one"],
        "floor_many": many["floor"],
        "many": many["many"],
    }


def main() -> None:
    """Measure and report."""
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {
            "CONTINUITY_HOME": home,
            "DJANGO_SETTINGS_MODULE": "tests.lean_settings",
        }
        os.environ.pop("DATABASE_URL", None)
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connection

        call_command("migrate", verbosity=0)
        ms = _measure()
        connection.close()
    report(
        "policy_check",
        ours_ms=spread(ms["one"]),
        ours_ms_1000_rules=spread(ms["many"]),
        goal_ms=1.0,
        floor_ms=spread(ms["floor"]),
        ratio=ratio(ms["one"], ms["floor"]),
        ratio_1000_rules=ratio(ms["many"], ms["floor_many"]),
    )


if __name__ == "__main__":
    main()
