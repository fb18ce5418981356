"""A call's arguments are read from path, query and body."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.http import HttpRequest, QueryDict
from django.test import RequestFactory

from decisions.foundation.errors import BodyTooLarge, InvalidInput, MalformedBody, UnsupportedBody
from decisions.rest_base.arguments import RequestArguments, read_json
from runs.api.schemas.runs import LIST_TASK_RUNS_INPUT, SUBSCRIBE_INPUT

LIST, EVENTS = RequestArguments(LIST_TASK_RUNS_INPUT), RequestArguments(SUBSCRIBE_INPUT)


def test_a_query_is_converted_to_the_types_of_the_schema() -> None:
    found = EVENTS.of_query(QueryDict("after=3&limit=10"), {"runId": "run_x"})
    assert found == {"after": 3, "limit": 10, "runId": "run_x"}


@pytest.mark.parametrize(
    "query",
    [
        "limit=1.0",
        "limit=1e2",
        "limit=+1",
        "limit=%201",
        "limit=1_0",
        "limit=",
        "limit=true",
        "limit=0x10",
        "limit=١",
        "limit=" + "9" * 5000,
        "limit=0",
        "limit=1001",
        "limit=-1",
        "offset=9223372036854775808",
        "limit=1&limit=1",
        "status=RUNNING",
        "status=",
        "status=queued%00",
        "orderBy=x",
        "ordering=user__password",
        "templateId=" + "x" * 129,
        "status[]=queued",
        "constructor=1",
        "%00=1",
        "limit[$gt]=1",
    ],
)
def test_a_query_that_the_schema_does_not_allow_is_refused(query: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        LIST.of_query(QueryDict(query), {})
    assert len(refused.value.message) < 500


def test_a_path_parameter_may_not_be_repeated_in_the_query() -> None:
    for read in (EVENTS.of_query, lambda q, p: EVENTS.of_body(dict(q.items()), QueryDict(), p)):
        with pytest.raises(InvalidInput, match="path"):
            read(QueryDict("runId=run_y"), {"runId": "run_x"})


def test_a_whole_number_in_floating_point_is_accepted_as_an_integer() -> None:
    integer_or_null = {"type": ["integer", "null"]}
    arguments = RequestArguments(
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "size": {"type": "integer"},
                "maybe": integer_or_null,
                "either": {"anyOf": [integer_or_null]},
                "some": {"type": "array", "items": integer_or_null},
                "share": {"type": "number"},
                "free": {},
                "options": {"type": "object", "properties": {"limit": integer_or_null}},
            },
        }
    )
    body = {
        "size": 3.0,
        "maybe": 3.0,
        "either": 3.0,
        "some": [3.0, None],
        "share": 3.0,
        "free": {"size": 3.0},
        "options": {"limit": 3.0},
    }
    found = arguments.of_body(body, QueryDict(), {})
    assert repr(found) == (
        "{'size': 3, 'maybe': 3, 'either': 3, 'some': [3, None], 'share': 3.0,"
        " 'free': {'size': 3.0}, 'options': {'limit': 3}}"
    )
    with pytest.raises(InvalidInput, match="size"):
        arguments.of_body({"size": 3.5}, QueryDict(), {})


@pytest.mark.parametrize("body", [[], "x", 1, None, True])
def test_a_body_that_is_not_an_object_is_refused(body: Any) -> None:
    with pytest.raises(InvalidInput, match="object"):
        LIST.of_body(body, QueryDict(), {})


def test_a_call_with_a_body_accepts_no_query() -> None:
    with pytest.raises(InvalidInput, match="limit: this call takes"):
        LIST.of_body({}, QueryDict("limit=1"), {})


def request(raw: bytes, content_type: str = "application/json", **headers: str) -> HttpRequest:
    return RequestFactory().generic("POST", "/", raw, content_type, headers=headers)


def test_a_body_passes_the_gate() -> None:
    assert read_json(request(b'{"a": 1}', "application/json; charset=UTF-8"), limit=8) == {"a": 1}
    assert read_json(request(b"", "text/plain"), limit=8) == {}
    with pytest.raises(MalformedBody):
        read_json(request(b'{"a":1,"a":2}'), limit=100)


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/json",
        "application/jsonx",
        "application/json; charset=utf-16",
        "multipart/form-data",
    ],
)
def test_another_content_type_is_refused(content_type: str) -> None:
    with pytest.raises(UnsupportedBody):
        read_json(request(b"{}", content_type), limit=100)


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate, gzip", "x"])
def test_an_encoded_body_is_refused(encoding: str) -> None:
    with pytest.raises(UnsupportedBody):
        read_json(request(b"{}", **{"content-encoding": encoding}), limit=100)


def test_a_body_of_one_byte_over_the_limit_is_refused() -> None:
    raw = json.dumps("x" * 98).encode()
    assert len(raw) == 100
    assert read_json(request(raw), limit=100) == "x" * 98
    with pytest.raises(BodyTooLarge):
        read_json(request(raw), limit=99)
