"""Runs are found by words in English and Chinese, by label, error and time, on both databases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from decisions.identity.principals import Principal
from runs.models import HOST_ACTION, Run, RunTerms
from runs.queries.run_lists import list_runs, list_runs_of_call
from runs.queries.run_search import find_runs
from runs.search import matching
from runs.submission.cancel import cancel_run
from runs.submission.labels import label_run
from runs.submission.submit import submit_run

MakeRun = Callable[..., Run]


def found(text: str) -> set[str]:
    """Return the ids of the runs that a text finds."""
    return set(find_runs(Run.objects.all(), text).values_list("id", flat=True))


@pytest.fixture
def agent_run(principal: Principal) -> str:
    """Submit a run of a Chinese goal."""
    return submit_run(
        principal=principal,
        template_id="agent_task",
        inputs={"goal": "登录 https://ada:pw@shop.example/orders?key=geheim 并导出订单"},
        options={"labels": {"env": "prod", "team": "搜索"}},
    ).run_id


@pytest.mark.parametrize(
    "text",
    ["登录", "录", "导出订单", "shop.example", "ORDERS shop", "env prod", "搜索", "agent task"],
)
def test_a_submitted_run_is_found_by_its_goal_its_labels_and_its_template(
    agent_run: str, make_run: MakeRun, text: str
) -> None:
    make_run()
    assert found(text) == {agent_run}


@pytest.mark.parametrize("text", ["geheim", "pw", "ada", "订登", "%", "'", '"*', "'); --"])
def test_no_run_is_found_by_what_it_does_not_show(agent_run: str, text: str) -> None:
    assert found(text) == set()


def test_a_run_is_found_by_the_end_of_its_id_as_pages_show_it(make_run: MakeRun) -> None:
    run = make_run()
    make_run()
    assert found(run.id[-8:]) == found(f"run_…{run.id[-8:]}") == found(run.id) == {run.id}


def test_a_run_is_found_by_its_error_as_soon_as_it_has_one(
    submit: Callable[..., str], principal: Principal
) -> None:
    run_id = submit()
    assert found("RUN_CANCELED") == set()
    cancel_run(principal=principal, run_id=run_id)
    assert found("RUN_CANCELED") == found("canceled") == {run_id}
    assert Run.objects.get(id=run_id).error_code == "RUN_CANCELED"
    listed = list_runs(principal=principal, error_code="RUN_CANCELED")
    assert ([run["runId"] for run in listed["runs"]], listed["total"]) == ([run_id], 1)


def test_a_changed_label_is_found_and_the_one_before_is_not(
    make_run: MakeRun, principal: Principal
) -> None:
    run = make_run(status="failed", labels={"env": "prod"})
    assert label_run(principal=principal, run=run, add={"env": "test"})
    assert not label_run(principal=principal, run=run, add={"env": "test"})
    assert list_runs(principal=principal, labels={"env": "prod"})["runs"] == []
    (shown,) = list_runs(principal=principal, labels={"env": "test"})["runs"]
    assert (shown["runId"], shown["labels"]) == (run.id, {"env": "test"})


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"waiting": True}, "w"),
        ({"waiting": False}, "qf"),
        ({"user_id": "alice"}, "q"),
        ({"principal_id": "token:tok_1"}, "f"),
        ({"query": "made test", "status": "failed"}, "f"),
        ({"min_elapsed_ms": 700}, "f"),
        ({"max_elapsed_ms": 700}, "f"),
        ({"min_elapsed_ms": 701}, ""),
    ],
)
def test_filters_keep_the_runs_that_match(
    make_run: MakeRun, principal: Principal, filters: dict[str, Any], names: str
) -> None:
    waiting = {"waiting_for": {"type": "answer"}, "ready": False, "status": "running"}
    ids = {
        "q": make_run(user_id="alice").id,
        "w": make_run(**waiting).id,
        "f": make_run(status="failed", principal_id="token:tok_1", active_ms=700).id,
    }
    listed = list_runs(principal=principal, **filters)
    assert {run["runId"] for run in listed["runs"]} == {ids[name] for name in names}
    assert listed["total"] == len(names)


@pytest.mark.parametrize(
    ("call", "names"),
    [
        ({}, "s"),
        ({"q": "made"}, "s"),
        ({"submittedBy": "tok_1"}, "s"),
        ({"status": "running"}, ""),
        ({"hostActions": True}, "saw"),
        ({"hostActions": True, "q": "made"}, "saw"),
        ({"templateId": HOST_ACTION}, "aw"),
        ({"waiting": True}, "w"),
    ],
)
def test_browser_actions_of_hosts_are_listed_if_the_call_names_them(
    make_run: MakeRun, principal: Principal, call: dict[str, Any], names: str
) -> None:
    waiting = {"waiting_for": {"type": "answer"}, "ready": False, "status": "running"}
    ids = {
        "s": make_run(principal_id="token:tok_1").id,
        "a": make_run(template_id=HOST_ACTION, principal_id="token:tok_1").id,
        "w": make_run(template_id=HOST_ACTION, **waiting).id,
    }
    page = list_runs_of_call(principal=principal, call=call)
    assert {run["runId"] for run in page["runs"]} == {ids[name] for name in names}
    assert (page["total"], page["hasMore"]) == (len(names), False)
    whole = list_runs_of_call(principal=principal, call={"q": ids["a"]})
    assert [run["runId"] for run in whole["runs"]] == [ids["a"]]


def test_a_search_finds_no_run_of_another_workspace(
    make_run: MakeRun, principal: Principal, outsider: Principal
) -> None:
    make_run(subject="登录", workspace_id=outsider.workspace_id)
    assert list_runs(principal=principal, query="登录")["runs"] == []
    assert len(list_runs(principal=outsider, query="登录")["runs"]) == 1


def test_the_terms_of_a_deleted_run_are_deleted(make_run: MakeRun) -> None:
    make_run(subject="登录").delete()
    assert not RunTerms.objects.exists()
    assert found("登录") == set()


def test_more_runs_than_are_read_by_the_index_first_are_found(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "FEW", 1)
    ids = {make_run().id for _ in range(3)}
    assert found("made") == ids


def test_the_setting_with_which_terms_are_read_ends_with_the_search(make_run: MakeRun) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no such setting.")
    with transaction.atomic(), connection.cursor() as cursor:
        assert found("nothing") == set()
        cursor.execute("SHOW enable_seqscan")
        assert cursor.fetchone() == ("on",)
