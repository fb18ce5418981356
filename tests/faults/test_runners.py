"""Calls to runners while processes die on either side: a call that may have arrived is never sent
again, and no command keeps running at the runner without a caller."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from decisions.identity.principals import local_principal
from runners.targets.targets import TargetFields, allow_on_target, create_target_row
from runs.models import Run
from runs.submission.cancel import cancel_run
from runs.submission.submit import submit_run
from tests.faults.installation import FaultInstallation
from tests.support.runners.docker_runner_process import (
    RunnerProcess,
    best_isolation,
    link_sleep,
    processes_named,
    start_docker_runner,
)
from tests.support.runners.tcp_relay import Relay, relay_to
from tests.support.runs.worker_rows import error_of

pytestmark = pytest.mark.usefixtures("open_loopback")
OPEN = {"CONTINUITY_EGRESS_ALLOW": "127.0.0.1"}
LONG_TIMEOUT_MS = 180_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that both runners use."""
    (shared_folder := tmp_path / "shared").mkdir()
    return shared_folder


@pytest.fixture
def runners(folder: Path) -> Iterator[list[RunnerProcess]]:
    """Two runners."""
    isolation = ("--isolation", best_isolation(folder))
    with ExitStack() as stack:
        yield [stack.enter_context(start_docker_runner(folder, *isolation)) for _ in range(2)]


@pytest.fixture
def proxy(runners: list[RunnerProcess]) -> Iterator[Relay]:
    """The address of a TCP proxy in front of a runner."""
    with relay_to(*(runner.port for runner in runners)) as relay:
        yield relay


def create_runner_target(proxy: Relay, timeout_ms: int = LONG_TIMEOUT_MS) -> str:
    """Create a target for the runner at that address, with every tool allowed."""
    principal = local_principal()
    fields = TargetFields(
        principal.tenant_id,
        principal.workspace_id,
        "runner",
        "docker-runner",
        endpoint=proxy.endpoint,
        config={"timeoutMs": timeout_ms},
    )
    target = create_target_row(fields, actor="test")
    allow_on_target(target, ["*"], actor="test", reason="test")
    return target.id


def submit_commands(target_id: str, *lines: str) -> str:
    """Submit a run of command lines; the run tries all of them."""
    calls = [{"name": "bash.exec", "args": {"cmd": line}, "targetId": target_id} for line in lines]
    return submit_run(
        principal=local_principal(),
        template_id="call_tools",
        inputs={"calls": calls, "stopOnError": False},
        options={"mode": "async"},
    ).run_id


def wait_for_sleep(installation: FaultInstallation, folder: Path, sleep_command: str) -> None:
    """Wait until the sleep commands run, in the foreground and in the background."""
    installation.wait_until(lambda: (folder / "started").exists(), "the call did not start")
    installation.wait_until(lambda: len(processes_named(sleep_command)) == 2)


def long_command(sleep_command: str) -> str:
    """Return a command line that takes ten minutes and leaves a background process."""
    return f"echo x >> started; ./{sleep_command} 600 & ./{sleep_command} 600"


def first_failure(run: Run) -> dict[str, Any]:
    """Return the details of the first call's error from a run's result."""
    error = (
        error_of(run)["details"]["items"][0]["error"]
        if run.error
        else ((run.result or {})["results"][0]["error"])
    )
    assert error["code"] == "TOOL_EXEC_FAILED"
    details: dict[str, Any] = error["details"]
    return details


@pytest.mark.slow
def test_a_call_ends_at_its_deadline_and_leaves_no_process(
    installation: FaultInstallation, folder: Path, proxy: Relay
) -> None:
    installation.start("scheduler")
    installation.workers(1, **OPEN)
    sleep_command = link_sleep(folder)
    run = installation.wait_for_end(
        submit_commands(create_runner_target(proxy, 5_000), long_command(sleep_command))
    )
    assert first_failure(run) == {"reason": "timeout", "effect": "unknown"}
    installation.wait_until(
        lambda: not processes_named(sleep_command), "a command still runs at the runner"
    )
    assert (folder / "started").read_text() == "x\n"
    installation.check_invariants()


@pytest.mark.slow
def test_a_canceled_run_ends_its_call_at_the_runner(
    installation: FaultInstallation, folder: Path, proxy: Relay
) -> None:
    installation.start("scheduler")
    installation.workers(1, **OPEN)
    sleep_command = link_sleep(folder)
    run_id = submit_commands(create_runner_target(proxy), long_command(sleep_command))
    wait_for_sleep(installation, folder, sleep_command)
    assert cancel_run(principal=local_principal(), run_id=run_id)["success"]
    installation.wait_until(
        lambda: not processes_named(sleep_command), "a command still runs at the runner"
    )
    assert proxy.count_received(b"bash.exec") == 1
    installation.check_invariants()


@pytest.mark.slow
def test_a_killed_runner_fails_only_its_own_call(
    installation: FaultInstallation, folder: Path, runners: list[RunnerProcess], proxy: Relay
) -> None:
    installation.start("scheduler")
    installation.workers(1, **OPEN)
    sleep_command = link_sleep(folder)
    run_id = submit_commands(
        create_runner_target(proxy),
        long_command(sleep_command),
        *(f"echo {number}" for number in range(8)),
    )
    wait_for_sleep(installation, folder, sleep_command)
    (chosen,) = [runner for runner in runners if runner.port == proxy.chosen[-1]]
    chosen.process.send_signal(signal.SIGKILL)
    run = installation.wait_for_end(run_id)
    assert (run.status, first_failure(run)["effect"]) == ("partial_success", "unknown")
    assert [runner["output"]["stdout"] for runner in (run.result or {})["results"][1:]] == [
        f"{number}\n" for number in range(8)
    ]
    assert (folder / "started").read_text() == "x\n"
    assert proxy.count_received(b"bash.exec") == 9
    installation.wait_until(
        lambda: not processes_named(sleep_command), "a command still runs at the runner"
    )
    installation.check_invariants()


def test_a_call_whose_worker_is_killed_is_sent_once(
    installation: FaultInstallation, folder: Path, proxy: Relay
) -> None:
    installation.start("scheduler")
    (worker,) = installation.workers(1, **OPEN)
    sleep_command = link_sleep(folder)
    run_id = submit_commands(create_runner_target(proxy), long_command(sleep_command), "echo after")
    wait_for_sleep(installation, folder, sleep_command)
    worker.kill()
    installation.workers(1, **OPEN)
    run = installation.wait_for_end(run_id)
    assert run.status == "failed"
    assert error_of(run)["details"]["effect"] == "unknown"
    assert (folder / "started").read_text() == "x\n"
    assert proxy.count_received(b"bash.exec") == 1
    installation.wait_until(
        lambda: not processes_named(sleep_command), "a command still runs at the runner"
    )
    installation.check_invariants()
