"""The timeout of a run: which time counts, and what remains of the run when it expires."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from artifacts.chunks import read_chunk
from artifacts.models import Artifact
from decisions.identity.principals import Principal
from runs.execution import engine
from runs.journal import outcome
from runs.models import Run, RunStep
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.runs.step_template import Stepwise
from tests.support.runs.worker_rows import error_of, fresh

Submit = Callable[..., str]
ExecuteRun = Callable[[str], Run]


@pytest.mark.slow
def test_a_run_that_times_out_fails_with_its_partial_results(
    submit: Submit, execute_run: ExecuteRun, principal: Principal
) -> None:
    run = execute_run(submit("ok", "sleep:60", "ok", options={"timeoutMs": 15_000}))
    assert (run.status, error_of(run)["errorCode"]) == ("failed", "RUN_TIMEOUT")
    assert error_of(run)["details"] == {"succeededSteps": 1, "totalSteps": 3}
    assert error_of(run)["step"]["step"] == 1
    suggested = run.next_actions[0]["args"]
    assert suggested["options"]["timeoutMs"] > 15_000
    assert submit_run(
        principal=principal,
        template_id=suggested["templateId"],
        inputs=suggested["inputs"],
        options=suggested["options"],
    )
    steps = RunStep.objects.filter(run=run).order_by("index")
    assert [step.status for step in steps] == ["succeeded", "failed", "pending"]
    artifact = Artifact.objects.get(run_id=run.id)
    assert run.next_actions[-1]["tool"] == "read_page_content"
    assert run.next_actions[-1]["args"]["artifactId"] == artifact.id
    content = read_chunk(principal=principal, artifact_id=artifact.id)
    assert orjson.loads(content["data"]) == {"done": 1}


def test_time_in_the_queue_does_not_count_in_async_mode(
    submit: Submit, execute_run: ExecuteRun
) -> None:
    run_id = submit("ok", options={"timeoutMs": 2000})
    Run.objects.filter(id=run_id).update(created_at=datetime.now(UTC) - timedelta(hours=1))
    assert execute_run(run_id).status == "succeeded"


def test_time_in_the_queue_counts_in_sync_mode_and_an_expired_run_starts_no_step(
    submit_unusual: Submit, execute_run: ExecuteRun, tmp_path: Path
) -> None:
    file = tmp_path / "f"
    run_id = submit_unusual("append x", file=str(file), options={"mode": "sync", "timeoutMs": 2000})
    Run.objects.filter(id=run_id).update(created_at=datetime.now(UTC) - timedelta(seconds=3))
    run = execute_run(run_id)
    assert error_of(run)["errorCode"] == "RUN_TIMEOUT"
    assert not file.exists()
    assert RunStep.objects.get(run=run).status == "pending"


def test_the_clock_continues_from_the_last_lease(submit: Submit, execute_run: ExecuteRun) -> None:
    run_id = submit("sleep:600", options={"timeoutMs": 300_000})
    Run.objects.filter(id=run_id).update(active_ms=299_800)
    start_time = time.monotonic()
    run = execute_run(run_id)
    assert time.monotonic() - start_time < 150
    assert error_of(run)["errorCode"] == "RUN_TIMEOUT"
    assert run.active_ms >= 300_000


def test_a_run_whose_time_was_used_up_by_lost_workers_starts_no_step(
    submit_unusual: Submit, execute_run: ExecuteRun, tmp_path: Path
) -> None:
    file = tmp_path / "f"
    run_id = submit_unusual("append x", file=str(file), options={"timeoutMs": 1000})
    Run.objects.filter(id=run_id).update(active_ms=1000, status="running", epoch=2)
    assert error_of(execute_run(run_id))["errorCode"] == "RUN_TIMEOUT"
    assert not file.exists()


def test_a_step_has_its_own_timeout_and_the_run_continues(
    submit: Submit, execute_run: ExecuteRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stepwise, "step_timeout_ms", 1000)
    monkeypatch.setattr(Stepwise, "step_retries", 0)
    run = execute_run(submit("sleep:30", "ok"))
    assert run.status == "partial_success"
    error = error_of(RunStep.objects.get(run=run, index=0))
    assert (error["errorCode"], error["retryable"]) == ("STEP_EXECUTION_FAILED", True)


def test_a_step_that_ends_at_the_timeout_is_in_the_journal(
    submit: Submit, worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = submit("ok", "ok", "sleep:30", options={"timeoutMs": 60_000}, concurrency=3)
    process_item = engine.Execution._process

    def process_and_expire(self: engine.Execution, item: object) -> None:
        process_item(self, item)  # type: ignore[arg-type]
        self._deadline = time.monotonic()

    monkeypatch.setattr(engine.Execution, "_process", process_and_expire)
    worker.work()
    run = fresh(run_id)
    assert error_of(run)["errorCode"] == "RUN_TIMEOUT"
    steps = RunStep.objects.filter(run_id=run_id, status="succeeded").count()
    assert error_of(run)["details"]["succeededSteps"] == steps == 1
    assert not RunStep.objects.filter(run_id=run_id, status="started").exists()


def test_a_full_storage_does_not_hide_the_timeout(
    submit: Submit, execute_run: ExecuteRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_disk_full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(outcome, "store_blob", raise_disk_full)
    run = execute_run(submit("ok", "sleep:30", options={"timeoutMs": 500}))
    assert error_of(run)["errorCode"] == "RUN_TIMEOUT"


def test_a_full_storage_at_the_end_fails_the_run_and_keeps_its_steps(
    submit_unusual: Submit, execute_run: ExecuteRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The step succeeded, so a later retry does not repeat it."""

    def raise_disk_full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(outcome, "store_blob", raise_disk_full)
    run = execute_run(submit_unusual("append x", file=str(tmp_path / "f"), effect="once"))
    assert error_of(run)["errorCode"] == "EXECUTION_ERROR"
    assert error_of(run)["details"]["causeCode"] == "STORAGE"
    assert "space" not in error_of(run)["message"]
    assert RunStep.objects.get(run=run).status == "succeeded"
