"""A tool's error as every door can write it out, whatever the tool put in it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from runners.invocation.workspace_errors import as_workspace_error, failed_call


@pytest.mark.parametrize("in_s4", [True, False])
def test_an_error_that_holds_no_text_is_told_as_text(in_s4: bool) -> None:
    error = {"errorCode": "E_IO", "message": "m\ud800", "details": {"\udfff": ["a\0b"]}}
    failed = failed_call(error, in_s4=in_s4)
    told = json.dumps(failed.as_dict(), ensure_ascii=False).encode()
    assert b"\\u0000" not in told
    assert failed.as_dict()["errorCode"] == "E_IO"


def test_of_a_carried_call_nothing_of_its_run_is_told() -> None:
    details = {"causeCode": "E_TIMEOUT", "done": 0, "logs": ["a"]}
    error = {"errorCode": "STEP_EXECUTION_FAILED", "message": "m", "details": details, "step": 1}
    told = failed_call(error, in_s4=True).as_dict()
    del told["hint"]
    assert told == {"errorCode": "E_TIMEOUT", "message": "m", "details": {"logs": ["a"]}}


@pytest.mark.parametrize(("language", "begins"), [("EN", "Check what"), ("ZH", "请先查看")])
def test_a_call_that_took_too_long_says_what_to_do(
    settings: Any, language: str, begins: str
) -> None:
    settings.WORKSPACE_POLICY = replace(settings.WORKSPACE_POLICY, language=language)
    error = {"errorCode": "RUN_TIMEOUT", "message": "m", "details": {}}
    told = as_workspace_error(failed_call(error, in_s4=True))["error"]
    assert (told["code"], told["hint"][: len(begins)]) == ("E_TIMEOUT", begins)
    own = failed_call({**error, "errorCode": "E_TIMEOUT", "hint": "own"}, in_s4=True)
    assert as_workspace_error(own)["error"]["hint"] == "own"
