"""An object's address without an id says where the list is."""

from __future__ import annotations

import httpx
import pytest

from tests.support.rest.rest import refusal


@pytest.mark.parametrize("path", ["runs", "tasks", "artifacts"])
def test_a_slash_at_the_end_of_a_list_is_refused_with_the_lists_address(
    api: httpx.Client, path: str
) -> None:
    answer = refusal(api.get(f"/api/v1/{path}/"), 400)
    assert answer["errorCode"] == "INVALID_PARAMETER"
    assert f"the list is /api/v1/{path}." in answer["message"]
