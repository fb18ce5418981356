"""Which traceparent headers are accepted, and what outgoing calls send."""

from __future__ import annotations

import pytest

from decisions.foundation.infra.trace_context import (
    child_span,
    current_traceparent,
    parse_traceparent,
    traceparent_for,
    use_traceparent,
)

VALID = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    "invalid",
    [
        None,
        5,
        "",
        "00",
        VALID.upper(),
        VALID + "-more",
        VALID + "\n",
        " " + VALID,
        VALID[:-1],
        "ff" + VALID[2:],
        VALID.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32),
        VALID.replace("00f067aa0ba902b7", "0" * 16),
        "00-1-2-3",
        "cc" + VALID[2:] + "-" + "a" * 999,
    ],
)
def test_an_invalid_traceparent_is_ignored(invalid: object) -> None:
    assert parse_traceparent(invalid) is None
    with use_traceparent(invalid):
        assert current_traceparent() is None


def test_a_later_version_is_read_like_the_current_one() -> None:
    assert parse_traceparent("cc" + VALID[2:-2] + "ff-more") == VALID
    assert parse_traceparent(VALID) == VALID


def test_an_outgoing_call_is_a_new_span_of_the_same_trace() -> None:
    spans = {child_span(VALID) for _ in range(50)}
    assert len(spans) == 50
    assert {span[:36] for span in spans} == {VALID[:36]}
    assert all(parse_traceparent(span) == span for span in spans)


def test_a_created_traceparent_is_the_same_for_the_same_run() -> None:
    assert traceparent_for("run_1") == traceparent_for("run_1") != traceparent_for("run_2")
    assert parse_traceparent(traceparent_for("run_1")) == traceparent_for("run_1")


def test_a_traceparent_is_valid_for_one_request_only() -> None:
    with use_traceparent(VALID):
        assert current_traceparent() == VALID
    assert current_traceparent() is None
