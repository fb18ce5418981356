"""The requests of the reference runner to a Docker engine; no container remains.

The engine is a fake (tests/support/runners/fake_docker_engine.py); these tests use no real one.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runners.docker_runner.errors import (
    CommandInterrupted,
    CommandNotStarted,
    IsolationMissing,
)
from runners.docker_runner.isolation import containers, running_container
from runners.docker_runner.isolation.base import MIB, Command, Limits, RunnerFolder
from runners.docker_runner.isolation.containers import ROOT, UNTIL, ContainerIsolation, user_of
from tests.support.runners.docker_runner_process import (
    execute_body,
    run_line,
    start_docker_runner,
)
from tests.support.runners.fake_docker_engine import (
    IMAGE,
    Container,
    Engine,
    Fault,
    docker_engine,
)
from tests.support.runs.waiting import wait_until

MakeIsolation = Callable[..., ContainerIsolation]
LIMITS = Limits(
    memory_bytes=512 * MIB, cpus=1.5, processes=64, file_bytes=MIB, scratch_bytes=2 * MIB
)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """A simulated engine whose address is in the environment."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is absent")
    with (
        tempfile.TemporaryDirectory(prefix="eng-") as folder,
        docker_engine(Path(folder)) as created,
    ):
        monkeypatch.setenv("DOCKER_HOST", created.url)
        yield created


@pytest.fixture
def isolation_at(engine: Engine) -> Iterator[MakeIsolation]:
    """Create isolations that use the engine; their connections close with the test."""
    created: list[ContainerIsolation] = []

    def make(root: Path, *, allow_net: bool = False, image: str = IMAGE) -> ContainerIsolation:
        created.append(
            ContainerIsolation(RunnerFolder(root, allow_net=allow_net, limits=LIMITS), image)
        )
        return created[-1]

    yield make
    for isolation in created:
        isolation._engine.close()


def test_a_container_has_these_limits_and_no_others(
    engine: Engine, isolation_at: MakeIsolation, tmp_path: Path
) -> None:
    run_line(isolation_at(tmp_path), "true", timeout_s=10)
    assert engine.created[0].request["HostConfig"] == {
        "Mounts": [
            {
                "Target": "/workspace",
                "Source": str(tmp_path),
                "Type": "bind",
                "ReadOnly": False,
                "BindOptions": {"Propagation": "rprivate"},
            }
        ],
        "NetworkMode": "none",
        "Memory": 512 * MIB,
        "MemorySwap": 512 * MIB,
        "NanoCpus": 1_500_000_000,
        "PidsLimit": 64,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges:true"],
        "ReadonlyRootfs": True,
        "Tmpfs": {"/tmp": f"rw,exec,nosuid,nodev,size={2 * MIB}"},
        "ShmSize": 2 * MIB,
        "IpcMode": "private",
        "Init": True,
        "LogConfig": {"Type": "none", "Config": {}},
        "Ulimits": [
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "nofile", "Soft": 4096, "Hard": 4096},
            {"Name": "fsize", "Soft": MIB, "Hard": MIB},
            {"Name": "cpu", "Soft": 16, "Hard": 16},
        ],
    }


def test_a_container_runs_the_line_in_its_folder_as_an_unprivileged_user(
    engine: Engine, isolation_at: MakeIsolation, tmp_path: Path
) -> None:
    (tmp_path / "below").mkdir()
    before = time.time()
    run_line(isolation_at(tmp_path), "echo $A", folder="below", env={"A": "1"}, timeout_s=10)
    request = engine.created[0].request
    expires_at = int(request["Labels"][UNTIL])
    assert request["Labels"][ROOT] == str(tmp_path)
    assert before + 69 <= expires_at <= time.time() + 71
    assert request["Image"] == IMAGE
    assert request["Cmd"][:2] == ["/bin/sh", "-c"]
    assert request["Cmd"][4:] == ["15", "echo $A", "30"]  # it ends itself after 15 s
    assert not request["Entrypoint"]
    assert request["WorkingDir"] == "/workspace/below"
    assert request["User"] == user_of(tmp_path)
    assert sorted(request["Env"]) == ["A=1", "HOME=/tmp", "LANG=C.UTF-8", "TERM=dumb"]
    assert (request["NetworkDisabled"], request["Tty"]) == (True, False)
    assert (request["OpenStdin"], request["StdinOnce"]) == (True, True)  # the runner's life line


def test_no_container_runs_as_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getuid", lambda: 0)
    monkeypatch.setattr("os.getgid", lambda: 0)
    assert not user_of(Path("/")).startswith("0:")
    monkeypatch.setattr("os.getuid", lambda: 1234)
    monkeypatch.setattr("os.getgid", lambda: 99)
    assert user_of(tmp_path) == "1234:99"


def test_an_allowed_network_is_the_bridge(
    engine: Engine, isolation_at: MakeIsolation, tmp_path: Path
) -> None:
    run_line(isolation_at(tmp_path, allow_net=True), "true")
    request = engine.created[0].request
    assert (request["HostConfig"]["NetworkMode"], request["NetworkDisabled"]) == ("bridge", False)


def test_both_streams_and_the_status_are_returned_and_no_container_remains(
    engine: Engine, isolation_at: MakeIsolation, tmp_path: Path
) -> None:
    result = run_line(isolation_at(tmp_path), "echo out; echo err >&2; exit 3")
    assert (result.status, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert engine.containers == {}


@pytest.mark.parametrize("step", ["/create", "/attach", "/start"])
def test_a_failing_engine_is_reported_and_leaves_no_container(
    engine: Engine, isolation_at: MakeIsolation, tmp_path: Path, step: str
) -> None:
    isolation, engine.faults = isolation_at(tmp_path), {step: "fail"}
    with pytest.raises(CommandNotStarted, match="the engine is out of order"):
        run_line(isolation, "true")
    assert engine.containers == {}


def test_a_missing_image_is_reported(isolation_at: MakeIsolation, tmp_path: Path) -> None:
    with pytest.raises(IsolationMissing, match="docker pull no-such:image"):
        asyncio.run(isolation_at(tmp_path, image="no-such:image").check())


def leave(engine: Engine, name: str, root: Path, expires_at: float) -> None:
    labels = {UNTIL: str(int(expires_at)), ROOT: str(root)}
    engine.containers[name] = Container(name, {"Labels": labels})


def test_expired_containers_of_this_folder_are_removed_and_those_of_others_stay(
    engine: Engine, isolation_at: MakeIsolation, tmp_path: Path
) -> None:
    leave(engine, "expired", tmp_path, 1)
    leave(engine, "current", tmp_path, time.time() + 60)
    leave(engine, "of-another-runner", tmp_path / "other", 1)
    asyncio.run(isolation_at(tmp_path).sweep())
    assert list(engine.containers) == ["current", "of-another-runner"]


def test_the_sweep_of_an_engine_that_is_away_does_not_fail(
    engine: Engine, isolation_at: MakeIsolation, tmp_path: Path
) -> None:
    isolation = isolation_at(tmp_path)
    engine.server_close()
    asyncio.run(isolation.sweep())


@pytest.mark.parametrize("line", ["exit 3", "exit 127", "exit 0"])
def test_an_image_or_a_folder_in_which_commands_cannot_run_is_reported_at_the_start(
    isolation_at: MakeIsolation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    isolation = isolation_at(tmp_path)
    asyncio.run(isolation.check())
    monkeypatch.setattr(containers, "boot_command", lambda command: ["/bin/sh", "-c", line])
    expected = f"cannot write {tmp_path}" if line == "exit 3" else "needs a shell at /bin/sh"
    with pytest.raises(IsolationMissing, match=expected):
        asyncio.run(isolation.check())


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait only half a second for the engine."""
    for module in (containers, running_container):
        monkeypatch.setattr(module, "ENGINE_S", 0.5)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("fault", ["hang", "stop"])
@pytest.mark.parametrize("step", ["/create", "/attach", "/start", "/wait", "DELETE"])
def test_an_engine_that_hangs_or_stops_during_a_call_leaves_no_container(
    engine: Engine, isolation_at: MakeIsolation, tmp_path: Path, step: str, fault: Fault
) -> None:
    isolation, engine.faults = isolation_at(tmp_path), {step: fault}
    # Before the start, nothing was executed; from then on, the effect is unknown.
    expected = CommandNotStarted if step in ("/create", "/attach") else CommandInterrupted
    if step == "DELETE":  # the command had ended and its result is known
        assert run_line(isolation, "exit 5").status == 5
    else:
        with pytest.raises(expected) as raised:
            run_line(isolation, "exit 5")
        effect = raised.value.details.get("effect")
        assert effect == ("unknown" if expected is CommandInterrupted else None)
    engine.thaw()
    wait_until(lambda: asyncio.run(isolation.sweep()) or not engine.containers, 10)


@pytest.mark.usefixtures("hurried")
def test_a_command_that_cannot_be_ended_is_not_reported_as_killed(
    engine: Engine, isolation_at: MakeIsolation, tmp_path: Path
) -> None:
    isolation, engine.faults = isolation_at(tmp_path), {"DELETE": "hang"}
    with pytest.raises(CommandInterrupted, match="could not be ended yet"):
        run_line(isolation, "sleep 600", timeout_s=0.5)
    engine.thaw()
    wait_until(lambda: asyncio.run(isolation.sweep()) or not engine.containers, 10)


@pytest.mark.parametrize(
    ("sent", "is_executed"), [(running_container.CONFIRMED, True), (b"", False), (None, False)]
)
def test_a_command_is_executed_once_its_runner_has_confirmed_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes | None, is_executed: bool
) -> None:
    """None: the runner was killed, and its engine keeps the container's stdin open."""
    monkeypatch.setattr(running_container, "CONFIRM_S", 1)
    command = running_container.boot_command(Command("touch ran", ".", {}, timeout_s=20))
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        if sent is not None:
            process.stdin.write(sent)
            process.stdin.flush()
        if sent == b"":
            process.stdin.close()
        process.wait(10)
    assert (tmp_path / "ran").exists() == is_executed


@pytest.mark.slow
def test_a_runner_works_with_containers_and_a_disconnect_ends_the_container(
    engine: Engine, tmp_path: Path
) -> None:
    with start_docker_runner(tmp_path, "--isolation", "docker", DOCKER_HOST=engine.url) as runner:
        assert runner.output("bash.exec", cmd="echo in; exit 2")["exitCode"] == 2
        body = json.dumps(execute_body("bash.exec", {"cmd": "sleep 600"})).encode()
        connection = runner.send("POST", "/execute", body, content_type="application/json")
        wait_until(lambda: len(engine.containers) == 1)
        connection.close()
        wait_until(lambda: not engine.containers)
        error = runner.error("bash.exec", cmd="sleep 600", timeoutMs=1000)
        assert error["code"] == "TIMEOUT"
        assert engine.containers == {}
