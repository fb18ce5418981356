"""The HTTP status of a failed call of a tool that S4 does not define."""

from __future__ import annotations

import pytest

from runners.invocation.workspace_errors import failed_call


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("INVALID_PARAMETER", 400),
        ("TRUST_LEVEL_NOT_ALLOWED", 400),
        ("POLICY_DENIED", 403),
        ("ELEMENT_NOT_FOUND", 422),
        ("PAGE_CRASHED", 422),
        ("STEP_EXECUTION_FAILED", 422),
        ("NAVIGATION_TIMEOUT", 504),
        ("RUN_TIMEOUT", 504),
    ],
)
def test_a_failure_has_the_http_status_of_its_error_code(code: str, status: int) -> None:
    error = failed_call({"errorCode": code, "message": "no"}, in_s4=False)
    assert (error.http_status, error.as_dict()["errorCode"]) == (status, code)
    wrapped = {"errorCode": "STEP_EXECUTION_FAILED", "message": "", "details": {"causeCode": code}}
    assert failed_call(wrapped, in_s4=False).http_status == status
