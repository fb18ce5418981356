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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.runners.docker_runner_process import (
    RunnerProcess,
    execute_body,
    start_docker_runner,
)
from tests.trials.fleet_trial.engine import Engine

IMAGE = "debian:bookworm-slim"
FIELDS = '{{.ID}} {{.State}} {{.Label "continuity.runner.root"}}'
ANSWER_S = 90.0  # at most 20 s for each of two requests to the engine, on a busy machine
SWEEP_S = 90.0  # a runner looks every minute
UNKNOWN = ("200 INTERRUPTED unknown", "200 TIMEOUT")


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
            effect = (told.get("details") or {}).get("effect", "")
            self.answer = f"{status} {told['code']} {effect}".strip()


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
            is_soon(lambda: not containers_of(engine, root, running=True), 15)
            running += len(containers_of(engine, root, running=True))
            left += len(containers_of(engine, root, running=False))
    return {
        "times": times,
        "containers running": running,
        "containers left": left,
        "answers": answers,
        "slowest end of the runner, s": round(slowest, 1),
    }


def end_engine_during_calls(engine: Engine, number: signal.Signals, times: int) -> dict[str, Any]:
    """End the engine by a signal at a random time of a call, and start it again once the call is
    answered; the runner goes on. Count the answers, untrue ones too, and what is left.
    """
    answers: dict[str, int] = {}
    untrue, running, slowest = 0, 0, 0.0
    with runner_root() as root, started_runner(engine, root) as runner:
        for turn in range(times):
            call = Call(runner, f"echo > ran-{turn}; (setsid sleep 171 &) ; sleep 171")
            call.start()
            time.sleep(random.uniform(0.0, 2.0))
            began = time.monotonic()
            engine.end(number)
            call.join(ANSWER_S)
            slowest = max(slowest, time.monotonic() - began)
            answers[call.answer] = answers.get(call.answer, 0) + 1
            untrue += call.answer not in UNKNOWN and (root / f"ran-{turn}").exists()
            engine.start()
            running += not is_soon(lambda: not containers_of(engine, root, running=True), 15)
        is_soon(lambda: not containers_of(engine, root, running=False), SWEEP_S)
        return {
            "times": times,
            "answers": answers,
            "executed, though the answer does not say that it may be": untrue,
            "slowest answer, s": round(slowest, 1),
            "containers running 15 s after the engine is back": running,
            "containers left after a sweep": len(containers_of(engine, root, running=False)),
            "a call afterwards": called(runner, "true"),
        }


def freeze_engine_during_calls(engine: Engine) -> dict[str, Any]:
    """Stop the engine's process for a while (SIGSTOP), before and during a call."""
    assert engine.process is not None
    with runner_root() as root, started_runner(engine, root) as runner:
        during = Call(runner, "echo > began; sleep 171", timeoutMs=4000)
        during.start()
        is_soon((root / "began").exists, 30)
        began = time.monotonic()
        engine.process.send_signal(signal.SIGSTOP)
        try:
            before = Call(runner, "echo > ran; sleep 171", timeoutMs=4000)
            before.start()
            for call in (during, before):
                call.join(ANSWER_S)
            slowest = time.monotonic() - began
        finally:
            engine.process.send_signal(signal.SIGCONT)
        running = not is_soon(lambda: not containers_of(engine, root, running=True), 15)
        is_soon(lambda: not containers_of(engine, root, running=False), SWEEP_S)
        return {
            "answer of the call that ran": during.answer,
            "answer of the call that came then": before.answer,
            "slowest answer, s": round(slowest, 1),
            "executed, though the answer does not say that it may be": int((root / "ran").exists()),
            "containers running 15 s after the engine is back": int(running),
            "containers left after a sweep": len(containers_of(engine, root, running=False)),
            "a call afterwards": called(runner, "true"),
        }


def called(runner: RunnerProcess, line: str) -> str:
    """Make a call, and return its answer."""
    call = Call(runner, line)
    call.start()
    call.join(ANSWER_S)
    return call.answer


def is_soon(condition: Callable[[], bool], within_s: float) -> bool:
    """Wait until something is so; return whether it became so in time."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True
