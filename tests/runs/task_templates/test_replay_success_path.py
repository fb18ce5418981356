"""The template `replay_success_path`: validated whole before it starts, then run step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.errors import InvalidInput
from decisions.identity.principals import Principal, authenticate, create_token
from decisions.memory.objects import put_shell, put_success_path
from runs.models import Run, RunStep
from runs.submission.prepare import prepare_run
from runs.submission.retry import retry_run
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.browser.template_sites import RunTemplate, Site, by_text
from tests.support.decisions.confirmations import answer_confirmation, reload_run
from tests.support.decisions.continuity import SHELL, SUCCESS_PATH
from tests.support.runs.worker_rows import error_of

StorePath = Callable[..., str]
NEVER = {"type": "textIncludes", "value": "never shown"}
SEARCH = [
    {"tool": "open_page", "args": {"url": "${url}"}},
    {
        "tool": "fill_field",
        "args": {"locator": by_text("search articles"), "value": "${query} 队列"},
    },
    {"tool": "submit_form", "args": {}},
    {
        "tool": "read_current_page",
        "args": {"waitFor": {"type": "selector", "value": "li.result", "timeoutMs": 20000}},
    },
]


@pytest.fixture
def store_path(principal: Principal) -> StorePath:
    """Store a success path of alice's and return its id: `store_path(steps, "url", "query")`."""

    def write(procedure: Any, *slots: str, user_id: str = "alice", **changed: Any) -> str:
        path = {
            **SUCCESS_PATH,
            "user_id": user_id,
            "procedure": procedure,
            "required_slots": list(slots),
            "slot_definitions": dict.fromkeys(slots, "its meaning"),
            **changed,
        }
        stored = put_success_path(principal=principal, call=path)
        return str(stored["item"]["object_id"])

    return write


def submit(principal: Principal, **inputs: Any) -> str:
    return submit_run(
        principal=principal,
        template_id="replay_success_path",
        inputs=inputs,
        options={"mode": "async"},
    ).run_id


def refusal(principal: Principal, **inputs: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as raised:
        submit(principal, **inputs)
    assert not Run.objects.exists()
    return raised.value


def test_a_stored_search_runs_again_with_other_values(
    run_template: RunTemplate, site: Site, store_path: StorePath
) -> None:
    object_id = store_path(SEARCH, "url", "query")
    slots = {"url": site.url("/search"), "query": "queues"}
    run = run_template("replay_success_path", objectId=object_id, slots=slots)
    assert run.status == "succeeded", run.error
    assert (run.result["objectId"], run.result["version"]) == (object_id, 1)
    tools = [step["tool"] for step in run.result["results"]]
    assert tools == ["open_page", "fill_field", "submit_form", "read_current_page"]
    assert "All about queues 队列" in str(run.result["results"][-1]["output"])
    assert RunStep.objects.get(run=run, index=2).effect == "once"


def test_steps_that_share_no_page_are_not_run_twice(
    run_template: RunTemplate, site: Site, store_path: StorePath
) -> None:
    read = {"tool": "read_page", "args": {"url": "${url}"}, "name": "look"}
    object_id = store_path([read, read], "url")
    run = run_template(
        "replay_success_path", objectId=object_id, slots={"url": site.url("/search")}
    )
    assert run.status == "succeeded", run.error
    assert [step["name"] for step in run.result["results"]] == ["look", "look"]
    assert site.server.hits["/search"] == 2


@pytest.mark.parametrize(
    ("step", "details"),
    [
        (
            {"tool": "wait_for", "args": {"condition": {**NEVER, "timeoutMs": 100}}},
            {"reason": "condition_not_met"},
        ),
        ({"tool": "read_page", "args": {"url": "${url}/missing"}}, {"httpStatus": 404}),
    ],
    ids=["a condition", "a page"],
)
def test_a_step_that_did_not_reach_what_it_reached_before_fails(
    run_template: RunTemplate,
    site: Site,
    store_path: StorePath,
    step: dict[str, Any],
    details: dict[str, Any],
) -> None:
    opening = {"tool": "open_page", "args": {"url": "${url}/article"}}
    object_id = store_path([opening, step], "url")
    run = run_template("replay_success_path", objectId=object_id, slots={"url": site.url("")})
    error = error_of(run)
    assert (run.status, error["step"]["step"]) == ("failed", 1)
    assert error["details"] | details == error["details"]


@pytest.mark.slow
def test_the_first_step_that_fails_ends_the_run(
    run_template: RunTemplate, site: Site, store_path: StorePath
) -> None:
    wrong = [
        SEARCH[0],
        {"tool": "fill_field", "args": {"locator": by_text("postal code"), "value": "x"}},
        SEARCH[3],
    ]
    run = run_template(
        "replay_success_path", objectId=store_path(wrong, "url"), slots={"url": site.url("/search")}
    )
    error = error_of(run)
    assert (run.status, error["errorCode"]) == ("failed", "ELEMENT_NOT_FOUND")
    assert (error["step"]["step"], error["details"]["done"]) == (1, 1)


def test_a_run_uses_the_version_that_it_was_submitted_with(
    principal: Principal, site: Site, store_path: StorePath, worker: WorkerProcess
) -> None:
    object_id = store_path([{"tool": "read_page", "args": {"url": "http://nowhere.invalid/"}}])
    run_id = submit(principal, objectId=object_id)
    store_path("by hand from now on")
    worker.work()
    assert Run.objects.get(id=run_id).status == "failed"
    again = retry_run(principal=principal, run_id=run_id).run_id
    assert Run.objects.get(id=again).inputs == {"objectId": object_id, "version": 1, "slots": {}}


def test_a_text_is_for_people(principal: Principal, store_path: StorePath) -> None:
    assert "text for people" in refusal(principal, objectId=store_path("Ask Ann.", "who")).message


def test_missing_slots_are_named(principal: Principal, store_path: StorePath) -> None:
    object_id = store_path(SEARCH, "url", "query")
    error = refusal(principal, objectId=object_id, slots={"url": "http://x.test/"})
    assert error.details == {"missingSlots": ["query"]}
    assert "query" in error.message


@pytest.mark.parametrize("unknown_slot", ["querry", "url "])
def test_an_unknown_slot_is_rejected(
    principal: Principal, store_path: StorePath, unknown_slot: str
) -> None:
    object_id = store_path(SEARCH[:1], "url")
    error = refusal(
        principal, objectId=object_id, slots={"url": "http://x.test/", unknown_slot: "y"}
    )
    assert "has no slot" in error.message


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"tool": "rm_rf", "args": {}}, "step 2 of the success path: there is no tool rm_rf"),
        ({"tool": "read_page", "args": {}}, "step 2 of the success path, read_page: url"),
        ({"tool": "read_page", "args": {"url": "http://x.test/", "z": 1}}, "read_page: z"),
        ({"tool": "read_page", "args": {"url": ["${url}"]}}, "read_page: url"),
    ],
)
def test_an_invalid_step_is_found_before_the_first_step_runs(
    principal: Principal, store_path: StorePath, step: dict[str, Any], expected: str
) -> None:
    object_id = store_path([SEARCH[0], step], "url")
    assert (
        expected in refusal(principal, objectId=object_id, slots={"url": "http://x.test/"}).message
    )


def test_unknown_foreign_and_other_objects_read_the_same(
    principal: Principal, outsider: Principal, store_path: StorePath
) -> None:
    object_id = store_path(SEARCH[:1], "url")
    shell = put_shell(principal=principal, call={**SHELL, "user_id": "alice"})["item"]["object_id"]
    bob = authenticate(create_token(name="b", users=["bob"]))
    slots = {"url": "http://x.test/"}
    messages = {
        refusal(caller, objectId=path_id, slots=slots, **options).message
        for caller, path_id, options in (
            (principal, "obj_nothing", {}),
            (principal, shell, {}),
            (outsider, object_id, {}),
            (bob, object_id, {}),
            (principal, object_id, {"version": 2}),
        )
    }
    assert messages == {"inputs.objectId: there is no such success path."}


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"objectId": ""},
        {"objectId": "x", "slots": []},
        {"objectId": "x", "more": 1},
        {"objectId": "x", "version": 0},
    ],
)
def test_unknown_inputs_are_rejected(principal: Principal, inputs: dict[str, Any]) -> None:
    assert refusal(principal, **inputs).details["errors"]


def test_a_slot_that_is_the_whole_value_keeps_its_type(
    principal: Principal, store_path: StorePath
) -> None:
    condition = {"type": "selector", "value": "#${id}", "timeoutMs": "${ms}"}
    wait = {"tool": "wait_for", "args": {"condition": condition}}
    object_id = store_path([SEARCH[0], wait], "url", "id", "ms")
    plan = prepare_run(
        principal=principal,
        template_id="replay_success_path",
        session_id=None,
        options={},
        inputs={"objectId": object_id, "slots": {"url": "http://x.test/", "id": "a", "ms": 50}},
    ).plan
    expected = {"type": "selector", "value": "#a", "timeoutMs": 50}
    assert plan[1].input["args"] == {"condition": expected}


def test_policy_is_evaluated_before_each_step(
    run_template: RunTemplate, site: Site, store_path: StorePath
) -> None:
    create_rule(
        RuleFields("deny", tool="fill_field", reason="Nothing is typed here."), actor="test"
    )
    run = run_template(
        "replay_success_path",
        objectId=store_path(SEARCH, "url", "query"),
        slots={"url": site.url("/search"), "query": "queues"},
    )
    error = error_of(run)
    assert (run.status, error["details"]["causeCode"]) == ("failed", "POLICY_DENIED")
    assert error["step"]["step"] == 1
    assert not site.server.hits["/api/find"]


def test_a_step_waits_for_a_person_and_continues_from_there(
    submit_template: Callable[..., str],
    site: Site,
    store_path: StorePath,
    worker: WorkerProcess,
    close_browser: None,
) -> None:
    create_rule(RuleFields("confirm", tool="submit_form", reason="Look first."), actor="test")
    slots = {"url": site.url("/search"), "query": "queues"}
    run_id = submit_template(
        "replay_success_path", objectId=store_path(SEARCH, "url", "query"), slots=slots
    )
    worker.work()
    run = Run.objects.get(id=run_id)
    assert (run.status, run.done_steps, run.lease_owner) == ("running", 2, None)
    assert site.server.hits["/api/find"] == 0
    answer_confirmation(run)
    worker.work()
    run = reload_run(run)
    assert run.status == "succeeded", run.error
    assert "All about queues 队列" in str(run.result["results"][-1]["output"])
    assert site.server.hits["/search"] == 1
