"""Test that any arguments get an answer or an error with an explanation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_server.tools.registry import McpTool, load_toolsets
from tests.contract.mcp_host import Host, error_in_s2, error_of, structured
from tests.support.decisions.continuity import SHELL, SUCCESS_PATH

TOOLS = load_toolsets(["runtime"])
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1,
        2.5,
        5.0,
        2**31,
        2**53,
        2**63,
        2**64,
        10**400,
        1e308,
        -0.0,
        "",
        "run_ok",
        "running",
        "\u202e",
        "💥" * 20,
        "%s %n {0}",
        "'; DROP TABLE runs_run; --",
        "../../etc/passwd",
        "a" * 70,
        [],
        {},
        [[]],
        {"": None},
        {"$ref": "#"},
        {"type": "object"},
    ]
)
ANYTHING = st.recursive(
    ODD | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def arguments_of(tool: McpTool) -> st.SearchStrategy[dict[str, Any]]:
    """Return arguments with the tool's names and odd values, sometimes with unknown names too."""
    named = st.dictionaries(st.sampled_from([*tool.input_schema["properties"], "x"]), ANYTHING)
    return named if tool.input_schema["properties"] else st.dictionaries(st.text(), ANYTHING)


calls = st.sampled_from(sorted(TOOLS)).flatmap(
    lambda name: st.tuples(st.just(name), arguments_of(TOOLS[name]))
)


@pytest.mark.slow
@settings(max_examples=60)
@given(call=calls)
def test_no_arguments_break_a_tool(host: Host, call: tuple[str, dict[str, Any]]) -> None:
    answer = host.call(*call)
    if not answer["result"]["isError"]:
        structured(answer)
        return
    error = error_of(answer)
    assert error["errorCode"] != "EXECUTION_ERROR", error
    assert len(str(error)) < 4000


# Valid calls of the Continuity API, into which the test puts odd values.
VALID_CALLS: dict[str, dict[str, Any]] = {
    "continuity_chat": {"message": "Run the tests.", "idempotency_key": "k", "slots": {}},
    "continuity_confirm_decision": {"decision_id": 1, "confirm_token": "x"},
    "continuity_report_outcome": {
        "decision_id": 1,
        "outcome_status": "failed",
        "outcome_note": "",
        "failure_type": None,
        "actual_impact_vector": {},
        "actual_cost": 0,
        "procedure": "x",
        "success_criteria": "y",
    },
    "continuity_get_state": {},
    "continuity_list_objects": {"type": "shell", "limit": 1},
    "continuity_put_shell": {**SHELL, "evidence": "x", "idempotency_key": "k", "if_match": "*"},
    "continuity_put_success_path": {**SUCCESS_PATH, "idempotency_key": "k", "if_match": "1"},
}


def nearly_valid(tool: str) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    """Return a valid call in which one or two fields have arbitrary values."""
    valid = {"user_id": "alice", **VALID_CALLS[tool]}
    changes = st.dictionaries(st.sampled_from(sorted(valid)), ANYTHING, min_size=1, max_size=2)
    return changes.map(lambda fields: (tool, {**valid, **fields}))


@pytest.mark.slow
@settings(max_examples=120)
@given(call=st.sampled_from(sorted(VALID_CALLS)).flatmap(nearly_valid))
def test_no_field_value_breaks_an_otherwise_valid_call(
    host: Host, call: tuple[str, dict[str, Any]]
) -> None:
    answer = host.call(*call)
    if not answer["result"]["isError"]:
        structured(answer)
        return
    error = error_in_s2(answer)
    assert error["code"] != "execution_error", error
    assert len(str(error)) < 4000


@pytest.mark.parametrize("character", ["\u0085", "\u2028", "\u2029"])
def test_an_answer_contains_no_unicode_line_separator(host: Host, character: str) -> None:
    answer = host.call("get_task_run", {"runId": [f"a{character}b"]})
    assert error_of(answer)["errorCode"] == "INVALID_PARAMETER"
