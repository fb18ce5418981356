"""What a step reports about the element that it used in place of the recorded one."""

from __future__ import annotations

from typing import Any

import pytest

from runs.task_templates.base import StepView
from runs.task_templates.matches import match_of, match_warnings
from runs.task_templates.outcomes import warnings_of

GOOD = {"type": "link", "label": "Next", "score": 0.9, "by": "text", "matched": "next", "equals": 1}


@pytest.mark.parametrize(
    ("change", "warnings"),
    [
        ({}, []),
        ({"equals": 3}, ["3 elements fit as well as “Next”; the first was taken."]),
        ({"score": 0.55}, ["“Next” was taken with a match score of only 0.55 of 1."]),
    ],
)
def test_a_warning_is_reported_for_a_poor_match_and_for_one_of_several_equal_matches(
    change: dict[str, Any], warnings: list[str]
) -> None:
    assert match_warnings({"match": GOOD | change}) == warnings


def test_a_match_is_reported_in_its_own_fields_with_its_texts_cut() -> None:
    match = match_of({"output": {"match": GOOD | {"matched": "#a" * 900, "value": "s3cret"}}})
    assert match == GOOD | {"matched": "#a" * 100}


@pytest.mark.parametrize(
    "output", [{}, {"match": None}, {"match": "all"}, {"match": {"score": "high"}}, {"output": "x"}]
)
def test_an_invalid_match_is_not_reported(output: dict[str, Any]) -> None:
    assert (match_of(output), match_warnings(output)) == (None, [])


def test_the_same_warning_on_every_page_is_reported_once() -> None:
    output = {"match": GOOD | {"equals": 2}, "warnings": ["slow"]}
    steps = [StepView(n, f"read page {n}", {}, True, output, None) for n in range(9)]
    assert warnings_of(steps) == ["2 elements fit as well as “Next”; the first was taken.", "slow"]
