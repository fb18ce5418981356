"""A tool's error is serializable for every API and transport, whatever it contains."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from runners.invocation.workspace_errors import as_workspace_error, failed_call


@pytest.mark.parametrize("in_s4", [True, False])
def test_an_error_with_invalid_text_is_made_serializable(in_s4: bool) -> None:
    error = {"errorCode": "E_IO", "message": "m\ud800", "details": {"\udfff": ["a\0b"]}}
    failed = failed_call(error, in_s4=in_s4)
    error_object = json.dumps(failed.as_dict(), ensure_ascii=False).encode()
    assert b"\\u0000" not in error_object
    assert failed.as_dict()["errorCode"] == "E_IO"


def test_the_error_of_a_direct_call_hides_the_details_of_its_run() -> None:
    details = {"causeCode": "E_TIMEOUT", "done": 0, "logs": ["a"]}
    error = {"errorCode": "STEP_EXECUTION_FAILED", "message": "m", "details": details, "step": 1}
    error_object = failed_call(error, in_s4=True).as_dict()
    del error_object["hint"]
    assert error_object == {"errorCode": "E_TIMEOUT", "message": "m", "details": {"logs": ["a"]}}


@pytest.mark.parametrize(("language", "begins"), [("EN", "Check what"), ("ZH", "请先查看")])
def test_a_call_that_timed_out_has_a_hint_in_the_configured_language(
    settings: Any, language: str, begins: str
) -> None:
    settings.WORKSPACE_POLICY = replace(settings.WORKSPACE_POLICY, language=language)
    error = {"errorCode": "RUN_TIMEOUT", "message": "m", "details": {}}
    error_object = as_workspace_error(failed_call(error, in_s4=True))["error"]
    assert (error_object["code"], error_object["hint"][: len(begins)]) == ("E_TIMEOUT", begins)
    own = failed_call({**error, "errorCode": "E_TIMEOUT", "hint": "own"}, in_s4=True)
    assert as_workspace_error(own)["error"]["hint"] == "own"
