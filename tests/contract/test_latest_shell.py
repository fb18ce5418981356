"""Test GET /user/{user_id}/objects/shell/latest: the Shell, its ETag, and who may read it."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from tests.support.decisions.continuity import SHELL
from tests.support.rest.rest import continuity_refusal, json_of

SHELLS = "/api/v1/user/alice/objects/shell"
LATEST = f"{SHELLS}/latest"


@pytest.fixture
def api(client_with: Callable[..., httpx.Client]) -> httpx.Client:
    """Return a client that may do everything for alice and nothing for other users."""
    return client_with(users=["alice"])


def test_the_latest_shell_is_the_newest_version_and_a_write_uses_its_etag(
    api: httpx.Client,
) -> None:
    for confidence in ("high", "low"):
        newest = json_of(api.post(SHELLS, json={**SHELL, "confidence": confidence}))["item"]
    answer = api.get(LATEST)
    assert (json_of(answer), newest["version"]) == ({"item": newest}, 2)
    for status in (200, 412):  # the same tag names a version that is no longer the latest
        written = api.post(SHELLS, json=SHELL, headers={"If-Match": answer.headers["ETag"]})
        assert written.status_code == status, written.text


def test_a_user_without_a_shell_has_none_and_no_etag(api: httpx.Client) -> None:
    answer = api.get(LATEST)
    assert json_of(answer) == {"item": None}
    assert "ETag" not in answer.headers


def test_another_users_shell_and_a_query_are_refused_with_an_s2_error(api: httpx.Client) -> None:
    foreign = continuity_refusal(api.get(LATEST.replace("alice", "bob")), 403)
    assert foreign["code"] == "forbidden_user"
    assert (
        continuity_refusal(api.get(LATEST, params={"version": 1}), 400)["code"]
        == "validation_error"
    )


def test_the_openapi_document_describes_the_answer(api: httpx.Client) -> None:
    document = json_of(api.get("/api/schema", headers={"Accept": "application/json"}))
    described = document["paths"]["/api/v1/user/{user_id}/objects/shell/latest"]["get"]
    assert described["operationId"] == "getLatestShell"
    item = document["components"]["schemas"]["ContinuityLatestShell"]["properties"]["item"]
    assert item["type"] == ["object", "null"]
