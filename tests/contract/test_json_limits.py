"""Test that a REST call refuses bodies that JSON allows and the databases do not, or not in full.

The schema of the field allows any value, so only the JSON parser's limits refuse these.
"""

from __future__ import annotations

import httpx
import pytest

from decisions.models import UserObject
from tests.support.rest import continuity_refusal

pytest_plugins = ["tests.support.rest_fixtures"]
URL = "/api/v1/user/alice/objects/shell"
JSON = {"Content-Type": "application/json"}
# What the value is, its JSON, and a part of the error message.
REFUSED = (
    ("a NUL", r'"a\u0000b"', "NUL"),
    ("a NUL in a field name", r'{"a\u0000b": 1}', "NUL"),
    ("half a surrogate pair", r'"\ud83d"', "surrogate"),
    ("not a number", "NaN", "not a JSON number"),
    ("a number that overflows", "1e999", "out of range"),
    ("an integer of 65 bits", str(2**64), "out of range"),
    ("a field twice", '{"b": 1, "b": 2}', "duplicate key"),
    ("33 levels", "[" * 31 + "]" * 31, "deeper than 32"),
    ("endless nesting", "[" * 100_000, "deeper than 32"),
    ("too many values", f"[{','.join('0' * 100_000)}]", "more than 100000 values"),
)


def body_with(value: str) -> str:
    """Return the body of a call that writes this JSON into a free field."""
    return (
        f'{{"social_interface": {{}}, "narratives": {{"free": {value}}}, "confidence": "high",'
        ' "validity": "long", "source": "user"}'
    )


@pytest.mark.parametrize(
    ("value", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_a_value_that_cannot_be_stored_is_refused(
    api: httpx.Client, value: str, message: str
) -> None:
    response = api.post(URL, content=body_with(value), headers=JSON)
    problem = continuity_refusal(response, 400)
    assert problem["code"] == "validation_error"
    assert message in problem["detail"]
    assert not UserObject.objects.exists()


@pytest.mark.parametrize(
    "value", ["[" * 30 + "]" * 30, str(2**63 - 1), "1e308", r'"\ud83d\ude00"', "null"]
)
def test_a_value_within_the_limits_is_stored(api: httpx.Client, value: str) -> None:
    assert api.post(URL, content=body_with(value), headers=JSON).status_code == 200


def test_a_body_that_is_not_utf_8_is_refused(api: httpx.Client) -> None:
    response = api.post(URL, content=body_with('"é"').encode("latin-1"), headers=JSON)
    assert "UTF-8" in continuity_refusal(response, 400)["detail"]


def test_an_argument_of_the_body_is_refused_in_the_query(api: httpx.Client) -> None:
    response = api.post(f"{URL}?if_match=*", content=body_with("1"), headers=JSON)
    assert "in the body" in continuity_refusal(response, 400)["detail"]
    assert not UserObject.objects.exists()
