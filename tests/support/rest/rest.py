"""Requests and checks of responses for tests over REST."""

from __future__ import annotations

import json
import ssl
from typing import Any

import httpx
from django.conf import settings

# A new client loads this machine's certificates (0.05 s) unless it gets a context; the clients of
# the tests use plain HTTP to this process.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
ERROR_KEYS = {"errorCode", "message", "details", "retryable", "recovery"}
STEPWISE = {"templateId": "test_stepwise", "inputs": {"do": ["ok"]}}
# Text that no response may contain: tracebacks, paths and SQL.
_INSIDES = ("Traceback", 'File "', "/usr/lib", "SELECT ", "INSERT ", "sqlite", "psycopg")


def bearer(token: str) -> dict[str, str]:
    """Return the header with a bearer token."""
    return {"Authorization": f"Bearer {token}"}


def submission(*do: str, **options: Any) -> dict[str, Any]:
    """Return a request body that submits a run of the test template; by default with mode async."""
    return {
        "templateId": "test_stepwise",
        "inputs": {"do": list(do or ("ok",))},
        "options": {"mode": "async", **options},
    }


def refusal(response: httpx.Response, status: int) -> dict[str, Any]:
    """Return the body of an error response with this status.

    Checks that it has the shape of all errors and contains no internal details.
    """
    problem = _problem(response, status)
    assert set(problem) - {"nextActions"} == ERROR_KEYS
    assert problem.get("nextActions") != []
    return problem


def continuity_refusal(response: httpx.Response, status: int) -> dict[str, Any]:
    """Do the same for an error of the Continuity API."""
    problem = _problem(response, status)
    assert set(problem) == {"code", "detail"}
    return problem


def _problem(response: httpx.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    internals = (*_INSIDES, str(settings.BASE_DIR))
    assert not [word for word in internals if word in response.text]
    problem: dict[str, Any] = json.loads(response.content)
    return problem


def code_of(response: httpx.Response) -> str:
    """Return the errorCode of a response, or OK."""
    if response.is_success:
        return "OK"
    return str(refusal(response, response.status_code)["errorCode"])


def json_of(response: httpx.Response, status: int = 200) -> dict[str, Any]:
    """Return the JSON of a successful response."""
    assert response.status_code == status, response.text
    answer: dict[str, Any] = response.json()
    return answer
