"""Calls of a docker-runner on a real engine, while the runner or the engine is killed or hangs."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.fleet_trial.engine import Engine
from tests.support.runners.docker_runner_process import (
    RunnerProcess,
    execute_body,
    start_docker_runner,
)

IMAGE = "debian:bookworm-slim"
FIELDS = '{{.ID}} {{.State}} {{.Label "continuity.runner.root"}}'
FROZEN_S = 33.0


@contextlib.contextmanager
def runner_root() -> Iterator[Path]:
    """Yield a folder that commands in containers may write."""
    with tempfile.TemporaryDirectory(prefix="cty-runner-") as folder:
        root = Path(folder).resolve()
        os.chown(root, 65534, 65534)
        yield root


def containers_of(engine: Engine, root: Path, *, running: bool) -> list[str]:
    """Return the ids of a runner's containers: those that run, or all."""
    listed = engine.docker("ps", "-a", "--format", FIELDS).splitlines()
    found = [line.split(" ") for line in listed if line.endswith(f" {root}")]
    return [one for one, state, _ in found if state == "running" or not running]


class Call(threading.Thread):
    """A call of bash.exec in a thread; `answer` is its result, or the error of the connection."""

    def __init__(self, runner: RunnerProcess, line: str, **args: Any) -> None:
        super().__init__(daemon=True)
        self._runner, self._body = runner, execute_body("bash.exec", {"cmd": line, **args})
        self.answer = "none"

    def run(self) -> None:
        """Make the call."""
        try:
            status, body = self._runner.post(json.dumps(self._body).encode())
        except (OSError, ValueError) as error:
            self.answer = type(error).__name__
        else:
            told = body.get("error") or body.get("result", {}).get("error") or {"code": "OK"}
            self.answer = f"{status} {told['code']}"


def started_runner(engine: Engine, root: Path) -> contextlib.AbstractContextManager[RunnerProcess]:
    """Start a runner with containers on the engine."""
    names = ("DOCKER_HOST", "DOCKER_CONFIG")
    env = {name: engine.env[name] for name in names if name in engine.env}
    return start_docker_runner(root, "--isolation", "docker", "--image", IMAGE, **env)


def signal_during_a_call(engine: Engine, number: signal.Signals, times: int) -> dict[str, Any]:
    """Send a signal to the runner at a random time of a call; count what is left and answered."""
    answers: dict[str, int] = {}
    left, running, slowest = 0, 0, 0.0
    for _ in range(times):
        with runner_root() as root, started_runner(engine, root) as runner:
            call = Call(runner, "(setsid sleep 171 &) ; sleep 171")
            call.start()
            time.sleep(random.uniform(0.0, 1.5))
            began = time.monotonic()
            runner.process.send_signal(number)
            runner.process.wait(90)
            slowest = max(slowest, time.monotonic() - began)
            call.join(30)
            answers[call.answer] = answers.get(call.answer, 0) + 1
            time.sleep(0 if number == signal.SIGTERM else 3)
            running += len(containers_of(engine, root, running=True))
            left += len(containers_of(engine, root, running=False))
    return {
        "times": times,
        "containers running": running,
        "containers left": left,
        "answers": answers,
        "slowest end of the runner, s": round(slowest, 1),
    }


def freeze_during_a_call(engine: Engine) -> dict[str, Any]:
    """Stop the engine's process for a while (SIGSTOP), before and during a call."""
    assert engine.process is not None
    with runner_root() as root, started_runner(engine, root) as runner:
        during = Call(runner, "sleep 171", timeoutMs=4000)
        during.start()
        time.sleep(2)
        os.kill(engine.process.pid, signal.SIGSTOP)
        before = Call(runner, "echo ran >> ran; sleep 171", timeoutMs=4000)
        before.start()
        time.sleep(FROZEN_S)
        os.kill(engine.process.pid, signal.SIGCONT)
        for call in (during, before):
            call.join(60)
        time.sleep(15)
        at_once = len(containers_of(engine, root, running=True))
        time.sleep(60)
        return {
            "answer of the call that ran": during.answer,
            "answer of the call that came then": before.answer,
            "executed": (root / "ran").exists(),
            "containers running 15 s later": at_once,
            "containers left after a sweep": len(containers_of(engine, root, running=False)),
        }
