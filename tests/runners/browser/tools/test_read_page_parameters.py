"""The parameters of the read_page tool."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from runners.browser.parameters import ExtractOptions, WaitCondition
from runners.browser.tools.read_page import ReadPage, read_page


def test_without_options_the_defaults_of_the_contract_apply() -> None:
    arguments = ReadPage.model_validate({"url": "http://example.test/"})
    assert arguments.extract.model_dump(by_alias=True) == {
        "pageInfo": True,
        "content": True,
        "maxElements": 50,
        "maxContentLength": 4000,
    }
    assert (arguments.wait_for, arguments.screenshot) == (None, False)


@pytest.mark.parametrize("value", [1, 1000, 5.0])
def test_whole_numbers_in_range_are_accepted(value: float) -> None:
    assert ExtractOptions.model_validate({"maxElements": value}).max_elements == value


@pytest.mark.parametrize(
    "options",
    [
        {"maxElements": 0},
        {"maxElements": 1001},
        {"maxElements": True},
        {"maxElements": "5"},
        {"maxElements": 1.5},
        {"maxElements": None},
        {"maxElements": float("nan")},
        {"maxContentLength": 0},
        {"maxContentLength": 50_001},
        {"pageInfo": 1},
        {"content": "yes"},
        {"unknown": 1},
    ],
)
def test_invalid_extract_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ExtractOptions.model_validate(options)


@pytest.mark.parametrize(
    "condition",
    [
        {"type": "selector"},
        {"type": "textIncludes", "value": ""},
        {"type": "urlContains", "value": 5},
        {"type": "never", "value": "x"},
        {"type": "stable", "timeoutMs": 0},
        {"type": "stable", "timeoutMs": 120_001},
        {},
    ],
)
def test_invalid_wait_conditions_are_refused(condition: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        WaitCondition.model_validate(condition)


def test_the_stable_condition_needs_no_value() -> None:
    condition = WaitCondition.model_validate({"type": "stable", "timeoutMs": 120_000})
    assert (condition.value, condition.timeout_ms) == (None, 120_000)


def test_the_schema_is_camel_case_and_allows_no_other_properties() -> None:
    schema = read_page.input_model.model_json_schema()
    assert set(schema["properties"]) == {"url", "extract", "waitFor", "whole", "screenshot"}
    assert schema["additionalProperties"] is False
    assert set(schema["$defs"]["WaitCondition"]["properties"]) == {"type", "value", "timeoutMs"}
