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
from runs.submission.services import cancel_run, submit_run
from tests.faults.world import World
from tests.integration.workers import error_of
from tests.support.docker_runner_process import (
    RunnerProcess,
    best_isolation,
    link_sleep,
    processes_named,
    start_docker_runner,
)
from tests.support.tcp_relay import Relay, relay_to

pytest_plugins = ["tests.support.runner_fixtures"]
pytestmark = pytest.mark.usefixtures("open_loopback")
OPEN = {"CONTINUITY_EGRESS_ALLOW": "127.0.0.1"}
LONG_MS = 180_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that both runners use."""
    (made := tmp_path / "hands").mkdir()
    return made


@pytest.fixture
def hands(folder: Path) -> Iterator[list[RunnerProcess]]:
    """Two runners."""
    safest = ("--isolation", best_isolation(folder))
    with ExitStack() as stack:
        yield [stack.enter_context(start_docker_runner(folder, *safest)) for _ in range(2)]


@pytest.fixture
def wire(hands: list[RunnerProcess]) -> Iterator[Relay]:
    """The address of a TCP proxy in front of a runner."""
    with relay_to(*(one.port for one in hands)) as relay:
        yield relay


def target_at(wire: Relay, timeout_ms: int = LONG_MS) -> str:
    """Create a target for the runner at that address, with every tool allowed."""
    me = local_principal()
    says = TargetFields(
        me.tenant_id,
        me.workspace_id,
        "hands",
        "docker-runner",
        endpoint=wire.endpoint,
        config={"timeoutMs": timeout_ms},
    )
    target = create_target_row(says, actor="test")
    allow_on_target(target, ["*"], actor="test")
    return target.id


def hand_in(target_id: str, *lines: str) -> str:
    """Submit a run of command lines; the run tries all of them."""
    calls = [{"name": "bash.exec", "args": {"cmd": line}, "targetId": target_id} for line in lines]
    return submit_run(
        principal=local_principal(),
        template_id="call_tools",
        inputs={"calls": calls, "stopOnError": False},
        options={"mode": "async"},
    ).run_id


def slept(world: World, folder: Path, nap: str) -> None:
    """Wait until the sleep commands run, in the foreground and in the background."""
    world.until(lambda: (folder / "begun").exists(), "the call did not begin")
    world.until(lambda: len(processes_named(nap)) == 2)


def napping(nap: str) -> str:
    """Return a command line that takes ten minutes and leaves a background process."""
    return f"echo x >> begun; ./{nap} 600 & ./{nap} 600"


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


def test_a_call_ends_at_its_deadline_and_leaves_no_process(
    world: World, folder: Path, wire: Relay
) -> None:
    world.start("scheduler")
    world.workers(1, **OPEN)
    nap = link_sleep(folder)
    run = world.ended(hand_in(target_at(wire, 5_000), napping(nap)))
    assert first_failure(run) == {"reason": "timeout", "effect": "unknown"}
    world.until(lambda: not processes_named(nap), "something goes on at the runner")
    assert (folder / "begun").read_text() == "x\n"
    world.check()


def test_a_canceled_run_ends_its_call_at_the_runner(
    world: World, folder: Path, wire: Relay
) -> None:
    world.start("scheduler")
    world.workers(1, **OPEN)
    nap = link_sleep(folder)
    run_id = hand_in(target_at(wire), napping(nap))
    slept(world, folder, nap)
    assert cancel_run(principal=local_principal(), run_id=run_id)["success"]
    world.until(lambda: not processes_named(nap), "something goes on at the runner")
    assert wire.count_received(b"bash.exec") == 1
    world.check()


def test_a_killed_runner_fails_only_its_own_call(
    world: World, folder: Path, hands: list[RunnerProcess], wire: Relay
) -> None:
    world.start("scheduler")
    world.workers(1, **OPEN)
    nap = link_sleep(folder)
    run_id = hand_in(target_at(wire), napping(nap), *(f"echo {number}" for number in range(8)))
    slept(world, folder, nap)
    (has_it,) = [one for one in hands if one.port == wire.chosen[-1]]
    has_it.process.send_signal(signal.SIGKILL)
    run = world.ended(run_id)
    assert (run.status, first_failure(run)["effect"]) == ("partial_success", "unknown")
    assert [one["output"]["stdout"] for one in (run.result or {})["results"][1:]] == [
        f"{number}\n" for number in range(8)
    ]
    assert (folder / "begun").read_text() == "x\n"
    assert wire.count_received(b"bash.exec") == 9
    world.until(lambda: not processes_named(nap), "something goes on at the runner")
    world.check()


def test_a_call_whose_worker_is_killed_is_sent_once(
    world: World, folder: Path, wire: Relay
) -> None:
    world.start("scheduler")
    (worker,) = world.workers(1, **OPEN)
    nap = link_sleep(folder)
    run_id = hand_in(target_at(wire), napping(nap), "echo after")
    slept(world, folder, nap)
    worker.kill()
    world.workers(1, **OPEN)
    run = world.ended(run_id)
    assert run.status == "failed"
    assert error_of(run)["details"]["effect"] == "unknown"
    assert (folder / "begun").read_text() == "x\n"
    assert wire.count_received(b"bash.exec") == 1
    world.until(lambda: not processes_named(nap), "something goes on at the runner")
    world.check()
