"""What tests over REST say of answers."""

from __future__ import annotations

import json
import ssl
from typing import Any

import httpx
from django.conf import settings

# A client reads this machine's certificates when it is made (0.05 s) unless it is given a context;
# all of ours speak plain HTTP to this process.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
SHAPE = {"errorCode", "message", "details", "retryable", "recovery"}
STEPWISE = {"templateId": "test_stepwise", "inputs": {"do": ["ok"]}}
# What no answer may hold: our tracebacks, paths and SQL.
_INSIDES = ("Traceback", 'File "', "/usr/lib", "SELECT ", "INSERT ", "sqlite", "psycopg")


def bearer(token: str) -> dict[str, str]:
    """Return the header that carries a token."""
    return {"Authorization": f"Bearer {token}"}


def submission(*do: str, **options: Any) -> dict[str, Any]:
    """Return the body of a submit of the test template; async unless the options say otherwise."""
    return {
        "templateId": "test_stepwise",
        "inputs": {"do": list(do or ("ok",))},
        "options": {"mode": "async", **options},
    }


def refusal(response: httpx.Response, status: int) -> dict[str, Any]:
    """Return the body of a refusal with this status; it has the one shape and tells no insides."""
    problem = _problem(response, status)
    assert set(problem) - {"nextActions"} == SHAPE
    assert problem.get("nextActions") != []
    return problem


def refusal_in_s2(response: httpx.Response, status: int) -> dict[str, Any]:
    """Return the same of a call of the Continuity API."""
    problem = _problem(response, status)
    assert set(problem) == {"code", "detail"}
    return problem


def _problem(response: httpx.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    insides = (*_INSIDES, str(settings.BASE_DIR))
    assert not [word for word in insides if word in response.text]
    problem: dict[str, Any] = json.loads(response.content)
    return problem


def code_of(response: httpx.Response) -> str:
    """Return what an answer says in the words of the rows: an errorCode, or OK."""
    if response.is_success:
        return "OK"
    return str(refusal(response, response.status_code)["errorCode"])


def told(response: httpx.Response, status: int = 200) -> dict[str, Any]:
    """Return the JSON of a successful answer."""
    assert response.status_code == status, response.text
    answer: dict[str, Any] = response.json()
    return answer
