"""Test named sessions over REST: create, list, rename, clone, close; never their state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from decisions.models import AuditEntry
from runners.models import BrowserSession
from tests.support.rest.rest import refusal

SESSIONS = "/api/v1/sessions"


@pytest.fixture
def session(api: httpx.Client) -> dict[str, Any]:
    """Create a session of the caller."""
    response = api.post(SESSIONS, json={"name": "shop"})
    assert response.status_code == 201
    session: dict[str, Any] = response.json()
    assert response.headers["location"] == f"{SESSIONS}/{session['sessionId']}"
    return session


def test_a_new_session_is_empty_and_belongs_to_the_caller(
    api: httpx.Client, session: dict[str, Any], client_with: Callable[..., httpx.Client]
) -> None:
    assert (session["name"], session["live"], session["usedByRunId"]) == ("shop", False, None)
    assert (session["cookies"], session["loggedInUntil"], session["savedAt"]) == (0, None, None)
    assert session["expiresAt"] - session["usedAt"] == 7 * 24 * 3600 * 1000
    assert api.get(f"{SESSIONS}/{session['sessionId']}").json() == session
    other = client_with(trust="local")
    assert other.get(SESSIONS).json()["sessions"] == []
    problem = refusal(other.get(f"{SESSIONS}/{session['sessionId']}"), 404)
    assert problem["errorCode"] == "SESSION_NOT_FOUND"


def test_sessions_are_listed_in_pages_newest_first(api: httpx.Client) -> None:
    session_ids = [api.post(SESSIONS, json={}).json()["sessionId"] for _ in range(3)]
    first = api.get(SESSIONS, params={"limit": 2}).json()
    rest = api.get(SESSIONS, params={"limit": 2, "offset": first["nextCursor"]}).json()
    assert (first["total"], first["hasMore"], rest["hasMore"]) == (3, True, False)
    shown = [session["sessionId"] for session in first["sessions"] + rest["sessions"]]
    assert sorted(shown) == sorted(session_ids)
    assert [session["createdAt"] for session in first["sessions"]] == sorted(
        (session["createdAt"] for session in first["sessions"]), reverse=True
    )


def test_a_session_is_renamed_cloned_and_closed(api: httpx.Client, session: dict[str, Any]) -> None:
    path = f"{SESSIONS}/{session['sessionId']}"
    assert api.patch(path, json={"name": " the shop "}).json()["name"] == "the shop"
    clone = api.post(f"{path}/clone", json={"name": "second"})
    assert clone.status_code == 201
    assert clone.json()["sessionId"] != session["sessionId"]
    assert api.delete(path).json() == {"success": True, "sessionId": session["sessionId"]}
    for again in (
        api.get(path),
        api.delete(path),
        api.patch(path, json={"name": "x"}),
        api.post(f"{path}/clone", json={}),
    ):
        assert refusal(again, 404)["errorCode"] == "SESSION_NOT_FOUND"
    assert [listed["name"] for listed in api.get(SESSIONS).json()["sessions"]] == ["second"]
    entries = AuditEntry.objects.filter(resource_type="session").order_by("id")
    assert [entry.action for entry in entries] == [
        "session.created",
        "session.renamed",
        "session.created",
        "session.closed",
    ]


def test_a_session_in_use_is_a_conflict(
    api: httpx.Client, session: dict[str, Any], make_run: Callable[..., Any]
) -> None:
    run = make_run(status="running", session_id=session["sessionId"], owns_session=False)
    problem = refusal(api.delete(f"{SESSIONS}/{session['sessionId']}"), 409)
    assert (problem["errorCode"], problem["details"]["runId"]) == ("CONFLICT", run.id)
    assert api.get(f"{SESSIONS}/{session['sessionId']}").json()["usedByRunId"] == run.id


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "", {"name": ""}),
        ("POST", "", {"name": "   "}),
        ("POST", "", {"name": 5}),
        ("POST", "", {"name": "x" * 129}),
        ("POST", "", {"name": "a\nb"}),
        ("POST", "", {"id": "sess_mine"}),
        ("POST", "", []),
        ("PATCH", "/ID", {}),
        ("PATCH", "/ID", {"name": None}),
        ("PATCH", "/ID", {"name": " "}),
        ("PATCH", "/ID", {"name": "x", "sessionId": "y"}),
        ("DELETE", "/ID", {"force": True}),
        ("POST", "/ID/clone", {"name": ""}),
        ("POST", "/ID/clone", {"state": "x"}),
    ],
    ids=str,
)
def test_bad_input_is_refused_and_changes_nothing(
    api: httpx.Client, session: dict[str, Any], method: str, path: str, body: Any
) -> None:
    url = SESSIONS + path.replace("ID", session["sessionId"])
    problem = refusal(api.request(method, url, json=body), 400)
    assert problem["errorCode"] == "INVALID_PARAMETER"
    assert [row.name for row in BrowserSession.objects.filter(closed_at=None)] == ["shop"]


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "offset=-1", "limit=x", "name=a"])
def test_a_bad_query_is_refused(api: httpx.Client, query: str) -> None:
    problem = refusal(api.get(f"{SESSIONS}?{query}"), 400)
    assert problem["errorCode"] == "INVALID_PARAMETER"
