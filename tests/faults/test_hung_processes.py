"""A process that hangs (SIGSTOP) is told from one that works, and is not there any more once it is
killed.
"""

from __future__ import annotations

import signal

import pytest

from runs.operations.health import processes
from runs.operations.health.processes import list_processes
from runs.operations.health.web_probe import describe_web_fault
from tests.faults.installation import FaultInstallation
from tests.services import free_port


def states(installation: FaultInstallation) -> dict[tuple[str, int], str]:
    return {(one.kind, one.pid): str(one.state) for one in list_processes()}


def test_a_hung_worker_is_shown_as_hung_before_and_after_its_leases_end(
    installation: FaultInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "HUNG_AFTER_S", 1.0)  # LEASE_LOST_S is 2 s here
    installation.start("scheduler")
    (worker,) = installation.workers(1)
    name = ("worker", worker.pid)
    installation.wait_until(lambda: states(installation)[name] == "running")
    worker.pause()
    installation.wait_until(lambda: states(installation)[name] == "hung", seconds=10)
    installation.wait_until(lambda: installation.worker_of(worker) is None, seconds=10)
    assert states(installation)[name] == "hung"  # its leases were ended
    worker.send_signal(signal.SIGCONT)
    installation.wait_until(lambda: states(installation)[name] == "running", seconds=10)
    worker.kill()
    assert states(installation)[name] == "lost"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["scheduler", "web"])
def test_a_hung_scheduler_and_a_hung_web_process_are_shown_as_hung(
    installation: FaultInstallation, kind: str
) -> None:
    port = free_port()
    command = {"scheduler": ["scheduler"], "web": ["serve", "--port", str(port)]}[kind]
    process = installation.start(*command)
    name = (kind, process.pid)
    installation.wait_until(lambda: states(installation).get(name) == "running")
    process.pause()
    if kind == "web":
        url = f"http://127.0.0.1:{port}"
        assert describe_web_fault(url) == "hung: no answer within 3 s"
    installation.wait_until(lambda: states(installation)[name] == "hung", seconds=40)
    process.send_signal(signal.SIGCONT)
    installation.wait_until(lambda: states(installation)[name] == "running", seconds=20)
    process.send_signal(signal.SIGTERM)
    process.wait(20)
    assert states(installation)[name] == "stopped"
