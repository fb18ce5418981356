"""GET /metrics: what worker and web processes count of their own work, summed over all of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from decisions.identity.principals import Principal
from runners import metrics
from runners.errors import ModelFailed, ModelUnavailable
from runners.tools.base import ToolResult
from runs.operations.health import publisher
from runs.worker.worker import WorkerProcess
from tests.runs.operations.test_deployment_files import METRIC, expressions
from tests.support.rest.metrics_scraping import (
    Samples,
    count_model_turn,
    count_runner_calls,
    failed_call,
    metric_value,
)
from tests.support.runs.worker_rows import register

Submit = Callable[..., str]


def test_a_finished_run_records_its_step_durations_and_its_wait(
    scrape: Callable[[], Samples], submit: Submit, worker: WorkerProcess
) -> None:
    submit("ok", "fail")
    worker.work()
    found = scrape()  # the web runs in this process here, and publishes before it answers
    for outcome in ("succeeded", "failed"):
        labels = {"template": "test_stepwise", "outcome": outcome}
        assert metric_value(found, "step_duration_seconds_count", **labels) == 1
        assert metric_value(found, "step_duration_seconds_bucket", **labels, le="+Inf") == 1
        assert metric_value(found, "step_duration_seconds_sum", **labels) > 0
    assert metric_value(found, "run_wait_seconds_count", template="test_stepwise") == 1
    assert metric_value(found, "workers") == 1


def test_counters_of_several_processes_are_summed_and_outlive_them(
    scrape: Callable[[], Samples],
) -> None:
    for _ in range(2):  # two workers, each ended after it published
        count_runner_calls(ToolResult(ok=True))
        count_runner_calls(failed_call("a reason of a later version"))
        metrics.browser_launched(sandbox=True)
        metrics.browser_crashed("page")
        assert publisher.publish()
    found = scrape()
    buckets = [
        metric_value(found, "runner_call_duration_seconds_bucket", outcome="ok", le=str(le))
        for le in metrics.RUNNER_CALLS.bounds
    ]
    assert buckets == sorted(buckets)
    assert metric_value(found, "runner_call_duration_seconds_count", outcome="other") == 2
    assert metric_value(found, "browser_launches_total", sandbox="on") == 2
    assert metric_value(found, "browser_crashes_total", what="page") == 2


def test_a_runner_call_is_counted_by_outcome_and_returned_unchanged(
    scrape: Callable[[], Samples],
) -> None:
    results = [ToolResult(ok=True, output={"a": 1}), failed_call("timeout"), failed_call("connect")]
    assert count_runner_calls(*results) == results

    async def interrupted() -> None:
        endless: asyncio.Future[ToolResult] = asyncio.Future()
        task = asyncio.ensure_future(metrics.runner_call(endless))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(interrupted())
    found = scrape()
    for outcome in ("ok", "timeout", "connect", "interrupted"):
        assert metric_value(found, "runner_call_duration_seconds_count", outcome=outcome) == 1


def test_a_model_turn_is_counted_by_outcome_and_its_tokens_only_when_complete(
    scrape: Callable[[], Samples],
) -> None:
    count_model_turn()
    count_model_turn()
    count_model_turn(ModelUnavailable("none is set"))
    count_model_turn(ModelFailed("late", details={"timedOut": True}))
    count_model_turn(ModelFailed("cut twice"))
    with pytest.raises(asyncio.CancelledError), metrics.model_turn():
        raise asyncio.CancelledError
    found = scrape()
    expected = {"ok": 2, "unavailable": 1, "late": 1, "failed": 1, "interrupted": 1}
    for outcome, number in expected.items():
        assert metric_value(found, "model_turn_duration_seconds_count", outcome=outcome) == number
    assert metric_value(found, "model_tokens_total", what="input") == 200
    assert metric_value(found, "model_tokens_total", what="output") == 40


def test_gauges_count_live_workers_only(
    scrape: Callable[[], Samples], principal: Principal
) -> None:
    register("w_here")
    for worker_id, pages in (("w_here", 3), ("w_gone", 40)):
        assert publisher.publish(worker_id, {"browser_pages": pages})
    assert metric_value(scrape(), "browser_pages") == 3


def test_counters_survive_an_outage_of_redis(scrape: Callable[[], Samples], settings: Any) -> None:
    redis_url, settings.REDIS_URL = settings.REDIS_URL, "redis://127.0.0.1:1/0"
    metrics.browser_launched(sandbox=True)
    found = scrape()
    assert (metric_value(found, "redis_up"), metric_value(found, "database_up")) == (0, 1)
    settings.REDIS_URL = redis_url
    publisher._redis._closed.clear()
    assert metric_value(scrape(), "browser_launches_total", sandbox="on") == 1


def test_no_label_contains_an_id(
    scrape: Callable[[], Samples], submit: Submit, worker: WorkerProcess, anonymous: httpx.Client
) -> None:
    submit("ok")
    worker.work()
    text = anonymous.get("/metrics").text
    assert not re.search(r"(run|wrk|art|sess|task|tool|target)_[0-9a-z]{20,}", text)
    assert {name for _, labels in scrape() for name, _ in labels} <= {
        "template",
        "status",
        "kind",
        "state",
        "outcome",
        "le",
        "sandbox",
        "what",
    }


def test_every_metric_of_the_dashboard_and_the_alert_rules_is_exported(
    scrape: Callable[[], Samples], principal: Principal
) -> None:
    metrics.step_ended("test_stepwise", "failed", 0.1)
    metrics.run_claimed("test_stepwise", 0.1)
    count_runner_calls(failed_call("connect"))
    metrics.browser_launched(sandbox=False)
    metrics.browser_crashed("page")
    count_model_turn()
    metrics.anonymous_events({"access.refused": 1})
    metrics.extension_message("ping")
    metrics.extension_acknowledged(0.1)
    metrics.extension_action_ended("success", 0.1)
    exported = {name for name, _ in scrape()}
    used = {name for text in expressions() for name in METRIC.findall(text)}
    assert len(used) > 20
    assert used <= exported
