"""The engine executes the steps of a run: success, failure, retry, and unusual values."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from artifacts.models import Artifact
from decisions.models import AuditEntry
from runs.events.types import PIECES
from runs.execution import event_buffer
from runs.models import Run, RunEvent, RunStep, Slot
from runs.worker.worker import WorkerProcess
from tests.support.runs.unusual_values_template import UNUSUAL_VALUES
from tests.support.runs.waiting import wait_until
from tests.support.runs.worker_rows import error_of

Submit = Callable[..., str]
ExecuteRun = Callable[[str], Run]
Background = Callable[[Callable[[], object]], threading.Thread]


def types_of(run: Run) -> list[str]:
    events = RunEvent.objects.filter(run=run).order_by("seq")
    assert list(events.values_list("seq", flat=True)) == list(range(1, run.last_seq + 1))
    return list(events.values_list("type", flat=True))


def test_a_run_goes_from_queued_to_succeeded(submit: Submit, execute_run: ExecuteRun) -> None:
    run = execute_run(submit("ok", "ok"))
    assert (run.status, run.done_steps, run.result) == ("succeeded", 2, {"done": 2})
    assert types_of(run) == [
        "run.queued",
        "run.started",
        "step.started",
        "step.succeeded",
        "step.started",
        "step.succeeded",
        "artifact.created",
        "run.succeeded",
    ]
    assert Slot.objects.filter(run_id__isnull=False).count() == 0


def test_some_failed_steps_make_a_partial_success_and_all_make_a_failure(
    submit: Submit, execute_run: ExecuteRun
) -> None:
    assert execute_run(submit("ok", "fail")).status == "partial_success"
    failed = execute_run(submit("fail"))
    assert (failed.status, error_of(failed)["errorCode"]) == ("failed", "STEP_EXECUTION_FAILED")
    assert failed.result is None


def test_a_retryable_failure_is_retried_once(
    submit: Submit, execute_run: ExecuteRun, tmp_path: Path
) -> None:
    run = execute_run(submit(f"flaky:{tmp_path / 'f'}"))
    assert run.status == "succeeded"
    assert types_of(run)[2:5] == ["step.started", "step.retrying", "step.succeeded"]
    assert RunStep.objects.get(run=run).attempts == 2


def test_a_step_that_keeps_failing_stops_after_two_attempts(
    submit_unusual: Submit, execute_run: ExecuteRun
) -> None:
    run = execute_run(submit_unusual("time_out"))
    assert (run.status, error_of(run)["errorCode"]) == ("failed", "NAVIGATION_TIMEOUT")
    assert RunStep.objects.get(run=run).attempts == 2


def test_a_once_step_is_never_retried(
    submit: Submit, execute_run: ExecuteRun, tmp_path: Path
) -> None:
    run = execute_run(submit(f"flaky:{tmp_path / 'f'}", effect="once"))
    assert run.status == "failed"
    assert RunStep.objects.get(run=run).attempts == 1


def test_no_step_runs_after_a_failed_one_where_the_template_stops_on_error(
    submit_unusual: Submit, execute_run: ExecuteRun, tmp_path: Path
) -> None:
    run = execute_run(submit_unusual("fail nul", "append never", file=str(tmp_path / "f")))
    assert run.status == "failed"
    assert not (tmp_path / "f").exists()
    assert RunStep.objects.get(run=run, index=1).status == "pending"


def test_a_defect_in_a_step_is_reported_by_an_error_id_alone(
    submit: Submit, execute_run: ExecuteRun, caplog: pytest.LogCaptureFixture
) -> None:
    run = execute_run(submit("bug"))
    text = str(run.error) + str(list(RunEvent.objects.values_list("data", flat=True)))
    assert error_of(run)["errorCode"] == "EXECUTION_ERROR"
    assert "secret" not in text
    assert "ZeroDivisionError" not in text
    assert error_of(run)["details"]["errorId"] in [
        getattr(r, "errorId", "") for r in caplog.records
    ]


def test_a_step_may_output_any_value(submit_unusual: Submit, execute_run: ExecuteRun) -> None:
    run = execute_run(submit_unusual(*(f"output {what}" for what in UNUSUAL_VALUES)))
    assert run.status == "succeeded", run.error
    assert RunStep.objects.filter(run=run, status="succeeded").count() == len(UNUSUAL_VALUES)


def test_a_step_may_emit_any_value(submit_unusual: Submit, execute_run: ExecuteRun) -> None:
    run = execute_run(submit_unusual(*(f"emit {what}" for what in UNUSUAL_VALUES)))
    assert run.status == "succeeded", run.error
    assert types_of(run).count("tool.update") == len(UNUSUAL_VALUES)


def test_many_small_updates_are_joined_into_few_events_without_loss(
    submit_unusual: Submit, execute_run: ExecuteRun
) -> None:
    run = execute_run(submit_unusual("stream 2000", "output nul", "stream 50"))
    assert run.status == "succeeded", run.error
    types = types_of(run)
    assert types.count("chatDelta") + types.count("tool.update") < 500, "hardly any were joined"
    for type_, field, word in (("chatDelta", "content", "{} "), ("tool.update", "delta", "{}é")):
        for step, number in ((0, 2000), (2, 50)):
            events = RunEvent.objects.filter(run=run, type=type_, data__step=step).order_by("seq")
            text = "".join(data[field] for data in events.values_list("data", flat=True))
            assert text == "".join(word.format(n) for n in range(number))
    assert types.index("chatDelta") > types.index("step.started")


def test_streamed_events_have_a_size_limit_and_the_last_is_marked_truncated(
    submit_unusual: Submit, execute_run: ExecuteRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_buffer, "MAX_STREAMED_BYTES", 3000)
    run = execute_run(submit_unusual("stream 2000", "stream 10"))
    assert run.status == "succeeded", run.error
    data_of_events = list(
        RunEvent.objects.filter(run=run, type__in=PIECES)
        .order_by("seq")
        .values_list("data", flat=True)
    )
    assert [data for data in data_of_events if "truncated" in data] == [data_of_events[-1]]
    assert data_of_events[-1]["step"] == 0
    assert 2000 < sum(map(event_buffer.size_of, data_of_events)) < 3200
    assert event_buffer.stored_bytes(run.id) == 3000


@pytest.mark.parametrize("what", sorted(UNUSUAL_VALUES))
def test_a_step_may_fail_with_any_value(
    submit_unusual: Submit, execute_run: ExecuteRun, what: str
) -> None:
    run = execute_run(submit_unusual(f"fail {what}"))
    assert error_of(run)["errorCode"] == "STEP_EXECUTION_FAILED", run.error
    assert RunStep.objects.get(run=run).status == "failed"


def test_an_artifact_of_a_step_has_its_index_and_expires_with_the_run(
    submit_unusual: Submit, execute_run: ExecuteRun
) -> None:
    run = execute_run(submit_unusual("save one", "save two"))
    artifacts = Artifact.objects.filter(run_id=run.id, kind="file").order_by("step_index")
    assert [(row.name, row.step_index) for row in artifacts] == [("one.txt", 0), ("two.txt", 1)]
    outputs = [step.output or {} for step in RunStep.objects.all()]
    assert {output["artifactId"] for output in outputs} == {row.id for row in artifacts}
    rows = Artifact.objects.filter(run_id=run.id)
    assert rows.count() == 3
    assert not rows.filter(expires_at__isnull=True).exists()
    assert types_of(run).count("artifact.created") == 3


def test_the_result_is_stored_as_an_artifact(submit: Submit, execute_run: ExecuteRun) -> None:
    run = execute_run(submit("ok"))
    assert Artifact.objects.get(run_id=run.id).kind == "result"


def test_a_run_is_audited_once_at_its_end(submit: Submit, execute_run: ExecuteRun) -> None:
    run = execute_run(submit("ok"))
    actions = AuditEntry.objects.filter(resource_id=run.id).order_by("id")
    assert list(actions.values_list("action", flat=True)) == [
        "run.submitted",
        "run.started",
        "run.succeeded",
    ]


def test_a_run_of_an_unknown_template_stays_queued(submit: Submit, worker: WorkerProcess) -> None:
    run_id = submit("ok")
    Run.objects.filter(id=run_id).update(template_id="not_here_yet")
    assert worker.work() == 0
    assert Run.objects.get(id=run_id).status == "queued"


def test_steps_of_a_run_execute_in_parallel_up_to_its_concurrency(
    submit: Submit, worker: WorkerProcess, in_background: Background, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    run_id = submit(*[f"until:{gate}"] * 5, concurrency=4)
    thread = in_background(worker.work)
    wait_until(lambda: RunStep.objects.filter(status="started").count() == 4)
    assert RunStep.objects.get(status="pending").index == 4
    gate.touch()
    thread.join(60)
    assert Run.objects.get(id=run_id).status == "succeeded"
