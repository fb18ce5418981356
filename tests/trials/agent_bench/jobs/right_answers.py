"""Check the answers of the jobs against the manual's files and the site's data, state and log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.trials.agent_bench.jobs.job_site import JobData
from tests.trials.agent_bench.jobs.manual import (
    COMMANDS,
    COMPARED,
    SECTIONS,
    TWENTY,
    WITH_PARAMETERS,
    Manual,
    words,
)
from tests.trials.agent_bench.site import Site

CITY, QUARTER = "Kyoto", "Q3"
MESSAGE = {
    "mail": "ada@example.org",
    "topic": "support",
    "text": "The lamp that you sent me has no bulb.",
}
BOOKING = {"day": "2027-03-14", "room": "Double", "breakfast": "on", "terms": "on"}


@dataclass(frozen=True)
class Facts:
    """What right answers are checked against."""

    manual: Manual
    site: Site
    data: JobData


def _fact(answer: Any, facts: Facts) -> bool:
    right = facts.manual.default_of("runtime-config-autovacuum", "autovacuum_vacuum_cost_delay")
    return right == "2 milliseconds" and answer in ("2 ms", "2 milliseconds")


def _titles(answer: Any, facts: Facts) -> bool:
    return [words(title) for title in answer] == [facts.manual.title(name) for name in TWENTY]


def _login(answer: Any, facts: Facts) -> bool:
    is_once = facts.site.log.count("POST /login") == 1
    return is_once and answer == {"balance": facts.data.balance, "order": facts.data.order}


def _items(answer: Any, facts: Facts) -> bool:
    items = facts.data.items
    dearest = max(items, key=lambda item: item["price"])["name"]
    total = sum(item["price"] for item in items)
    return bool(answer == {"count": len(items), "dearest": dearest, "sum": total})


def _names(facts: Facts, word: str) -> list[str]:
    return [item["name"] for item in facts.data.items if word in item["name"].casefold()]


def _search(answer: Any, facts: Facts) -> bool:
    was_sent = "GET /api/search?q=chair" in facts.site.log
    return was_sent and sorted(answer) == sorted(_names(facts, "chair"))


def _form(answer: Any, facts: Facts) -> bool:
    stored = facts.site.state["messages"] == [{**MESSAGE, "agree": "on"}]
    return bool(stored and answer == facts.data.receipt)


def _compare(answer: Any, facts: Facts) -> bool:
    manual = facts.manual
    right = {name: {s: manual.has_section(name, s) for s in SECTIONS} for name in COMPARED}
    return bool(answer == right)


def _table(answer: Any, facts: Facts) -> bool:
    return bool(answer == facts.data.sold[CITY][QUARTER])


def _codes(answer: Any, facts: Facts, count: int, suffix: str = "") -> bool:
    right = {item["number"]: item["code"] for item in facts.data.items[:count]}
    requests = [facts.site.log.count(f"GET /item/{number}{suffix}") for number in right]
    return bool(answer == right and requests == [1] * count)


def _failures(answer: Any, facts: Facts) -> bool:
    kinds = {"missing": "404", "broken": "500", "port": "refused", "host": "not resolved"}
    return bool(answer == {**kinds, "hang": "timeout"})


def _two_facts(answer: Any, facts: Facts) -> bool:
    timeout = facts.manual.default_of("runtime-config-replication", "wal_sender_timeout")
    code = facts.manual.error_code("deadlock_detected")
    return bool(answer == {"wal_sender_timeout": timeout, "deadlock_detected": code})


def _purposes(answer: Any, facts: Facts) -> bool:
    return bool(answer == {command: facts.manual.purpose(command) for command in COMMANDS})


def _one_time_code(answer: Any, facts: Facts) -> bool:
    is_once = facts.site.state["codes used"] == 1
    return bool(is_once and answer == [facts.data.limit, facts.data.limit])


def _feed(answer: Any, facts: Facts) -> bool:
    return bool(answer == {"count": len(facts.data.feed), "last": facts.data.feed[-1]})


def _stock(answer: Any, facts: Facts) -> bool:
    first = next(item for item in facts.data.items if "lamp" in item["name"].casefold())
    log = facts.site.log
    was_sent = "GET /api/search?q=zeppelin" in log and f"GET /stock/{first['number']}" in log
    return bool(was_sent and answer == {"zeppelin": 0, "stock": first["stock"]})


def _booking(answer: Any, facts: Facts) -> bool:
    return bool(facts.site.state["bookings"] == [BOOKING] and answer == facts.data.booking)


def _parameters(answer: Any, facts: Facts) -> bool:
    manual = facts.manual
    described = {name: manual.describes(name, "IF NOT EXISTS") for name in WITH_PARAMETERS}
    most = max(WITH_PARAMETERS, key=manual.count_parameters)
    return bool(answer == {"described": described, "most": most})


def _conditions(answer: Any, facts: Facts) -> bool:
    right = facts.manual.conditions("08")
    return len(right) > 5 and sorted(answer) == sorted(right)


def _report(answer: Any, facts: Facts) -> bool:
    kinds = {"busy": "503", "cut": "closed", "loop": "redirects", "private": "401"}
    return bool(answer == {"total": facts.data.total, **kinds})


CHECKS: dict[int, Callable[[Any, Facts], bool]] = {
    1: _fact,
    2: _titles,
    3: _login,
    4: _items,
    5: _search,
    6: _form,
    7: _compare,
    8: _table,
    9: lambda answer, facts: _codes(answer, facts, 60),
    10: _failures,
    11: _two_facts,
    12: _purposes,
    13: _one_time_code,
    14: _feed,
    15: _stock,
    16: _booking,
    17: _parameters,
    18: _conditions,
    19: lambda answer, facts: _codes(answer, facts, 40, "?slow=1"),
    20: _report,
}
