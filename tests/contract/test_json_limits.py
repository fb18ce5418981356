"""Test JSON that a REST call refuses although the schema of the field allows any value."""

from __future__ import annotations

import httpx
import pytest

from decisions.models import UserObject
from tests.support.rest.rest import continuity_refusal

URL = "/api/v1/user/alice/objects/shell"
JSON = {"Content-Type": "application/json"}


def body_with(value: str) -> bytes:
    """Return the body of a call that writes this JSON into a free field."""
    return (
        f'{{"social_interface": {{}}, "narratives": {{"free": {value}}}, "confidence": "high",'
        ' "validity": "long", "source": "user"}'
    ).encode()


@pytest.mark.parametrize(
    ("value", "message"),
    [(r'{"a\u0000b": 1}', "NUL"), ("[" * 50_000, "deeper than 32 levels")],
    ids=["a NUL in a field name", "endless nesting"],
)
def test_a_value_outside_the_limits_is_refused(api: httpx.Client, value: str, message: str) -> None:
    problem = continuity_refusal(api.post(URL, content=body_with(value), headers=JSON), 400)
    assert problem["code"] == "validation_error"
    assert message in problem["detail"]
    assert not UserObject.objects.exists()


@pytest.mark.parametrize(
    "value", ["[" * 30 + "]" * 30, str(2**63 - 1), "1e308", r'"\ud83d\ude00"', "null"]
)
def test_a_value_within_the_limits_is_stored(api: httpx.Client, value: str) -> None:
    assert api.post(URL, content=body_with(value), headers=JSON).status_code == 200
