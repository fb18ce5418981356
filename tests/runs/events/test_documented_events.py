"""The events of a run match docs/events.md: the types in order, and the fields of each."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from decisions.identity.principals import Principal
from runs.execution import running_steps
from runs.models import Run, RunEvent
from runs.submission.cancel import cancel_run
from runs.submission.retry import retry_run

Submit = Callable[..., str]
ExecuteRun = Callable[[str], Run]
DOCS = (Path(__file__).parents[3] / "docs/events.md").read_text()


def checked_events(run_id: str) -> list[RunEvent]:
    """Return the events of the run; check that seq has no gaps and every field is documented."""
    rows = list(RunEvent.objects.filter(run_id=run_id).order_by("seq"))
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    assert Run.objects.get(id=run_id).last_seq == len(rows)
    for row in rows:
        assert set(row.data) <= documented(row.type), row.type
    return rows


def documented(type_: str) -> set[str]:
    """Return the documented fields of an event's data."""
    line = next(one for one in DOCS.splitlines() if one.startswith(f"| `{type_}` |"))
    common = {"step", "name", "url"} if type_.startswith("step.") else set()
    return common | set(re.findall(r"`([a-zA-Z]+)`", line.split("|")[3]))


def types(run_id: str) -> list[str]:
    return [row.type for row in checked_events(run_id)]


def test_a_run_emits_events_for_each_step_and_its_end(
    submit: Submit, execute_run: ExecuteRun, tmp_path: Path
) -> None:
    run = execute_run(submit("ok", f"flaky:{tmp_path / 'x'}", "fail"))
    assert types(run.id) == [
        "run.queued",
        "run.started",
        "step.started",
        "step.succeeded",
        "step.started",
        "step.retrying",
        "step.succeeded",
        "step.started",
        "step.failed",
        "artifact.created",
        "run.partial_success",
    ]


@pytest.mark.parametrize(("what", "last"), [("ok", "run.succeeded"), ("fail", "run.failed")])
def test_the_type_of_the_last_event_is_the_status(
    submit: Submit, execute_run: ExecuteRun, what: str, last: str
) -> None:
    assert types(execute_run(submit(what)).id)[-1] == last


def test_a_long_step_emits_progress_events(
    submit: Submit, execute_run: ExecuteRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_steps, "PROGRESS_EVERY_S", 0.2)
    rows = checked_events(execute_run(submit("sleep:1", "ok")).id)
    progress = [row.data for row in rows if row.type == "step.progress"]
    assert {event["step"] for event in progress} == {0}
    assert [event["elapsedMs"] for event in progress] == sorted(
        {event["elapsedMs"] for event in progress}
    )
    assert 1 <= len(progress) <= 5


def test_a_canceled_run_and_its_retry_emit_their_events(
    submit: Submit, execute_run: ExecuteRun, principal: Principal
) -> None:
    run_id = submit("ok")
    cancel_run(principal=principal, run_id=run_id, reason="not wanted")
    assert types(run_id) == ["run.queued", "run.canceled"]
    again = retry_run(principal=principal, run_id=run_id).run_id
    assert checked_events(again)[0].data["retryOf"] == run_id
    assert execute_run(again).status == "succeeded"
