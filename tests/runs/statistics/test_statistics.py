"""Ended runs are counted once, in every period that is kept, and read as series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from runs.models import EndedRun, LoadSample, Run, RunStatistic, RunStep, Slot
from runs.statistics import periods
from runs.statistics.folding import fold_statistics, kind_of
from runs.statistics.histogram import bucket_of, percentiles
from runs.statistics.periods import ALL, Additions, delete_old_statistics, start_of
from runs.statistics.sampling import sample_load
from runs.statistics.series import RANGES, statistics, summary

pytestmark = pytest.mark.usefixtures("principal")
MakeRun = Callable[..., Run]


def ended(make_run: MakeRun, status: str = "succeeded", *, ago_s: float = 0, **more: Any) -> Run:
    """Create a run that was accepted some time ago, waited a second and ran for two."""
    at = datetime.now(UTC) - timedelta(seconds=ago_s)
    started = at + timedelta(seconds=1)
    return make_run(
        **{"status": status, "created_at": at, "started_at": started, "active_ms": 2000, **more}
    )


def add_steps(run: Run, *steps: tuple[str, dict[str, Any], dict[str, Any] | None]) -> None:
    """Add succeeded steps: name, input, output."""
    RunStep.objects.bulk_create(
        RunStep(
            run=run,
            index=number,
            name=name,
            effect="read",
            effect_key=f"{run.id}:{number}",
            input=step_input,
            output=output,
            status="succeeded",
        )
        for number, (name, step_input, output) in enumerate(steps)
    )


def row(**wanted: Any) -> RunStatistic:
    return RunStatistic.objects.get(**{"workspace_id": ALL, "template_id": ALL, **wanted})


def test_a_run_that_ends_is_counted_once_for_each_scope_and_period(make_run: MakeRun) -> None:
    run = ended(make_run, "failed")
    assert fold_statistics() == 1
    assert fold_statistics() == 0
    counted = RunStatistic.objects.filter(failed=1)
    assert counted.count() == 4 * len(periods.KEPT)
    scopes = set(counted.values_list("workspace_id", "template_id"))
    assert scopes == {(w, t) for w in (ALL, run.workspace_id) for t in (ALL, run.template_id)}


def test_a_fold_that_fails_counts_nothing_and_loses_nothing(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(make_run)

    def fail(self: Additions) -> None:
        raise OSError("killed")

    with monkeypatch.context() as broken:
        broken.setattr(Additions, "write", fail)
        with pytest.raises(OSError, match="killed"):
            fold_statistics()
    assert EndedRun.objects.count() == 1
    fold_statistics()
    fold_statistics()
    assert row(resolution_s=60).succeeded == 1


def test_a_status_that_changes_to_its_end_is_recorded_by_the_database(make_run: MakeRun) -> None:
    run = make_run()
    assert not EndedRun.objects.exists()
    now, error = datetime.now(UTC), {"errorCode": "X"}
    Run.objects.filter(id=run.id).update(status="canceled", ended_at=now, error=error)
    Run.objects.filter(id=run.id).update(hidden_at=now)
    assert list(EndedRun.objects.values_list("run_id", flat=True)) == [run.id]


def test_steps_pages_tokens_and_cost_are_summed_by_run(make_run: MakeRun) -> None:
    usage = {"usage": {"inputTokens": 700, "outputTokens": 30, "costUsd": 0.0125}}
    run = ended(make_run)
    add_steps(
        run,
        ("read https://a.example/", {"url": "https://a.example/"}, {"title": "A"}),
        ("turn 1", {"kind": "turn"}, usage),
        (
            "turn 2",
            {"kind": "turn"},
            {"usage": {"inputTokens": 1, "outputTokens": 1, "costUsd": None}},
        ),
        ("write_to_file", {"kind": "call"}, {"result": {}}),
    )
    fold_statistics()
    counted = row(resolution_s=60)
    assert counted.steps == {"read": 1, "model turn": 2, "tool call": 1}
    assert (counted.pages, counted.input_tokens, counted.output_tokens) == (1, 701, 31)
    assert counted.cost_micro_usd == 12_500


def test_the_series_have_a_point_for_each_period_and_the_newest_is_the_present_one(
    make_run: MakeRun,
) -> None:
    for status in ("succeeded", "succeeded", "failed", "partial_success"):
        ended(make_run, status)
    ended(make_run, "canceled", ago_s=3000, started_at=None)
    fold_statistics()
    series = statistics("1h")
    assert len(series["times"]) == 60
    assert sum(series["runs"]["canceled"]) == 1
    assert sum(series["runs"]["succeeded"][-2:]) == 2  # a minute may have begun since
    assert max(x for x in series["failureRate"]["test_stepwise"] if x is not None) == 25.0
    shown = [value for value in series["duration"]["p50"] if value is not None]
    assert shown == [pytest.approx(2000, rel=0.06)] * len(shown)
    waits = [value for value in series["wait"]["p95"] if value is not None]
    assert waits == [pytest.approx(1000, rel=0.06)] * len(waits)


def test_each_range_has_all_runs_of_its_time(make_run: MakeRun) -> None:
    for hours in (0, 2, 20, 100, 600):
        ended(make_run, ago_s=hours * 3600)
    fold_statistics()
    found = {name: sum(statistics(name)["runs"]["succeeded"]) for name in RANGES}
    assert found == {"1h": 1, "6h": 2, "24h": 3, "7d": 4, "30d": 5}


def test_a_failure_rate_is_that_of_four_points(make_run: MakeRun) -> None:
    ended(make_run, "failed", ago_s=600)
    for minutes in (9, 8, 7):
        ended(make_run, ago_s=60 * minutes)
    fold_statistics()
    rates = statistics("1h")["failureRate"]["test_stepwise"]
    shown = [rate for rate in rates if rate is not None]
    assert shown == [100.0, 50.0, pytest.approx(33.3), 25.0, 0.0, 0.0, 0.0]


def test_a_workspace_and_a_template_have_series_of_their_own(make_run: MakeRun) -> None:
    ended(make_run, workspace_id="one", template_id="a")
    ended(make_run, workspace_id="two", template_id="a")
    ended(make_run, workspace_id="two", template_id="b")
    fold_statistics()

    def number(**scope: str) -> int:
        return sum(statistics("1h", **scope)["runs"]["succeeded"])

    assert number() == 3
    assert (number(workspace_id="two"), number(template_id="a")) == (2, 2)
    assert number(workspace_id="two", template_id="a") == 1
    assert statistics("1h", workspace_id="one")["failureRate"].keys() == {"a"}


def test_the_load_is_observed_at_most_once_per_interval(make_run: MakeRun) -> None:
    assert not sample_load()  # the first time there is no time to count
    LoadSample.objects.update(sampled_at=datetime.now(UTC) - timedelta(seconds=20))
    running = make_run(status="running")
    Slot.objects.filter(number=0).update(run_id=running.id, workspace_id=running.workspace_id)
    make_run(created_at=datetime.now(UTC) - timedelta(seconds=90))
    assert sample_load()
    assert not sample_load()
    counted = row(resolution_s=900)
    assert 20_000 <= counted.slot_ms == counted.sampled_ms < 25_000
    assert counted.queued == 1
    assert 90_000 <= counted.oldest_ms < 100_000
    assert statistics("24h")["slots"]["used"][-1] == 1.0


def test_periods_are_deleted_when_they_are_no_longer_shown() -> None:
    old = datetime.now(UTC) - timedelta(hours=8)
    for resolution_s in periods.KEPT:
        RunStatistic.objects.create(
            resolution_s=resolution_s,
            at=start_of(old, resolution_s),
            workspace_id="",
            template_id="",
        )
    assert delete_old_statistics() == 2
    assert not RunStatistic.objects.filter(resolution_s__in=[60, 300]).exists()


def test_many_kinds_of_steps_do_not_grow_a_row_without_limit() -> None:
    now = datetime.now(UTC)
    for number in range(6):
        additions = Additions(now)
        kinds = Counter({f"kind{number}-{n}": 1 for n in range(100)})
        additions.add(now, ALL, ALL, steps=kinds)
        with transaction.atomic():
            additions.write()
    counted = row(resolution_s=60).steps
    assert len(counted) <= periods.KINDS * 10
    assert sum(counted.values()) == 600


def test_the_summary_of_a_day_counts_its_runs(make_run: MakeRun) -> None:
    for status in ("succeeded", "succeeded", "failed"):
        add_steps(ended(make_run, status), ("read a", {}, None), ("read b", {}, None))
    ended(make_run, "failed", ago_s=2 * 86_400)
    fold_statistics()
    day = summary()
    assert (day["ended"], day["steps"], day["mean_ms"]) == (3, 6, 2000)
    assert (day["by_status"]["failed"], day["success_share"]) == (1, 67)


def test_the_series_are_read_with_few_queries(make_run: MakeRun) -> None:
    ended(make_run)
    fold_statistics()
    with CaptureQueriesContext(connection) as captured:
        statistics("30d", template_id="test_stepwise")
    assert len(captured) == 3


@pytest.mark.parametrize("ms", [1, 30, 1000, 65_000, 40_000_000])
def test_a_percentile_is_off_by_five_percent_at_most(ms: float) -> None:
    histogram = {bucket_of(ms): 10}
    [found] = percentiles([histogram, histogram], [0.95])
    assert found == pytest.approx(ms, rel=0.051)
    assert percentiles([], [0.5, 0.95]) == (None, None)


def test_a_step_is_named_by_its_first_word_or_by_what_an_agent_did() -> None:
    assert kind_of("read", None) == "read"
    assert kind_of("turn", "turn") == "model turn"
    assert kind_of("", None) == "other"
