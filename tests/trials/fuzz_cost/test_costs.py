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


def test_what_is_too_high() -> None:
    native = Parser("native", 1, str, [], is_native=True)
    python = Parser("Python", 1, str, [])
    offline = Parser("a command", 1, str, [], longest_ms=9000.0)
    assert Cost(1, 120.0, 1.0, "").is_too_high(native)
    assert Cost(1, 120.0, 2.0, "").is_too_high(python)
    assert not Cost(1, 120.0, 1.0, "").is_too_high(python)
    assert not Cost(1, 90.0, 2.0, "").is_too_high(native)
    assert Cost(1, 6900.0, 1.0, "").is_too_high(python)
    assert not Cost(1, 6900.0, 1.0, "").is_too_high(offline)
    assert Cost(1, 6900.0, 2.0, "").is_too_high(offline)
