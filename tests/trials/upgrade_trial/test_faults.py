"""What the trial reports as a fault."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from tests.trials.upgrade_trial.fleet import Fleet, Version
from tests.trials.upgrade_trial.load import Load


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Return a load without a fleet's processes, for scenarios that make no requests."""
    fleet = Fleet(tmp_path, {})
    return Load(
        fleet,
        token="",
        confirmer="",
        files=tmp_path,
        site="",
        answer_by_command=lambda decision: None,
    )


@pytest.fixture
def version(tmp_path: Path) -> Version:
    """Return a version whose `manage.py worker` ends at once, and `manage.py scheduler` waits."""
    (tmp_path / "manage.py").write_text(
        "import sys, time\nif sys.argv[1] == 'scheduler': time.sleep(60)\n"
    )
    return Version("new", tmp_path, sys.executable)


def run_rounds(load: Load, scenario: Callable[[], None], *, count: int) -> None:
    """Repeat a scenario in the phase `both`, and stop after some rounds."""
    left, reached = iter(range(count)), threading.Event()

    def repeated() -> None:
        if next(left, None) is None:
            reached.set()
        scenario()

    repeated.__name__ = scenario.__name__
    load.repeat(repeated, pause_s=0.01)
    load.begin("both")
    assert reached.wait(5)
    load.stop()


def test_an_effect_that_did_not_happen_is_a_fault(load: Load, tmp_path: Path) -> None:
    def append() -> None:
        load.expect_line(tmp_path / "absent")

    run_rounds(load, append, count=2)
    assert len([fault for fault in load.faults if "append: FileNotFoundError" in fault]) >= 2
    assert load.faults[-1] == "[both] no round of append"


@pytest.mark.parametrize("error", [RuntimeError("exit 1"), json.JSONDecodeError("?", "", 0)])
def test_a_scenario_goes_on_after_each_error(load: Load, error: Exception) -> None:
    errors = iter([error])

    def fail_once() -> None:
        if found := next(errors, None):
            raise found

    run_rounds(load, fail_once, count=3)
    (fault,) = load.faults
    assert repr(error) in fault


def test_a_scenario_without_a_round_in_a_phase_is_a_fault(load: Load) -> None:
    def read() -> None:
        pass

    run_rounds(load, read, count=3)
    load.begin("finished")
    time.sleep(0.1)
    load.stop()
    assert load.faults == ["[finished] no round of read"]


def test_a_phase_that_is_too_short_for_a_round_has_no_missing_rounds(load: Load) -> None:
    def read() -> None:
        time.sleep(0.3)

    run_rounds(load, read, count=1)
    load.begin("finished")
    load.stop()
    assert load.faults == []


def test_a_scenario_that_does_not_end_is_a_fault(load: Load) -> None:
    goes_on = threading.Event()

    def wait() -> None:
        goes_on.wait(10)

    load.repeat(wait)
    load.stop(within_s=0.01)
    goes_on.set()
    assert load.faults == ["wait has not ended within 0 s"]


@pytest.mark.parametrize("is_stopping", [False, True])
@pytest.mark.parametrize("body", [None, {"idempotencyKey": "k"}, {"content": "blue"}])
def test_a_reset_is_a_fault_unless_the_process_stops_and_the_request_may_be_repeated(
    load: Load, monkeypatch: pytest.MonkeyPatch, is_stopping: bool, body: Any
) -> None:
    def request(*args: object, **more: object) -> httpx.Response:
        if next(resets, False):
            raise httpx.ReadError("[Errno 104] Connection reset by peer")
        return httpx.Response(200, json={"answered": True})

    resets, web = iter([True]), SimpleNamespace(address="http://x", name="new serve 0")
    monkeypatch.setattr(load._client, "request", request)
    monkeypatch.setattr(load.fleet, "web", lambda: web)
    monkeypatch.setattr(load.fleet, "_webs", [] if is_stopping else [web])
    if is_stopping and body != {"content": "blue"}:
        assert load.call("runs", body) == {"answered": True}
    else:
        with pytest.raises(httpx.ReadError):
            load.call("runs", body)


def test_a_process_that_ends_by_itself_is_a_fault(version: Version, tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, {})
    fleet.start(version, "worker", "scheduler", "scheduler")
    try:
        fleet.processes[0].popen.wait(10)
        fleet.stop(version, "scheduler")
        assert fleet.ended() == ["new worker 0 ended with 0"]
        fleet.processes[2].kill()
        assert fleet.ended()[1:] == ["new scheduler 2 ended with -9"]
    finally:
        fleet.close()
