"""A sample of the search for costly inputs: a second for each of the parsers that read most."""

from __future__ import annotations

import pytest

from tests.trials.fuzz_cost.costs import Cost, worst_cost
from tests.trials.fuzz_cost.parsers import PARSERS, Parser

SAMPLE = {"output schema", "globs"}
SLOW = {"JSON of a request", "text with secrets"}  # seconds on a busy machine


@pytest.mark.parametrize(
    "parser",
    [
        pytest.param(one, id=one.name, marks=[pytest.mark.slow] if one.name in SLOW else [])
        for one in PARSERS
        if one.name in SAMPLE | SLOW
    ],
)
def test_no_accepted_input_costs_too_much(parser: Parser) -> None:
    cost = worst_cost(parser, seconds=0.3)
    assert not cost.is_too_high(parser), cost


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["ab", "a"])
def test_a_quadratic_parser_is_found(pair: str) -> None:
    def quadratic(text: str) -> None:
        sum(text.count(pair) for _ in range(len(text) // 64))

    cost = worst_cost(Parser("quadratic", 32 * 1024, quadratic, ["a", "b"]), seconds=0.3)
    assert cost.power > 1.5


@pytest.mark.slow
def test_the_pause_of_other_threads_is_measured() -> None:
    native = Parser("native", 1024, lambda text: sum(range(2_000_000)), ["a"])
    python = Parser("Python", 1024, lambda text: [n * n for n in range(2_000_000)], ["a"])
    of_native, of_python = (worst_cost(one, seconds=0.3) for one in (native, python))
    assert of_python.pause_ms < 50 < of_native.pause_ms or of_native.ms < 50


def test_what_is_too_high() -> None:
    served = Parser("a request", 1, str, [])
    offline = Parser("a command", 1, str, [], longest_ms=9000.0, is_offline=True)
    assert Cost(1, 120.0, 1.0, "", pause_ms=110.0).is_too_high(served)
    assert Cost(1, 120.0, 2.0, "").is_too_high(served)
    assert not Cost(1, 120.0, 1.0, "").is_too_high(served)
    assert not Cost(1, 90.0, 2.0, "").is_too_high(served)
    assert Cost(1, 6900.0, 1.0, "").is_too_high(served)
    assert not Cost(1, 6900.0, 1.0, "", pause_ms=110.0).is_too_high(offline)
    assert Cost(1, 6900.0, 2.0, "").is_too_high(offline)
