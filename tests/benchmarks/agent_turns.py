"""Measure the overhead of an agent's turn and the delay of its first words, against a bare client
that sends the same requests to the same model server.

The model thinks for 150 ms, streams a few words and calls a tool that reads nothing. So a turn is:
the request, the streamed words, the turn and its call as steps of a durable run, the next request.
A turn's overhead is the time between two requests, less that of the bare client. The delay of the
first words runs from when the model sends them until a reader of the run's event stream receives
them. PostgreSQL with fsync, one worker, one web process.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.benchmarks.event_stream import ROOT, environment, process
from tests.benchmarks.rounds import report, shape
from tests.services import DurablePostgresServer, free_port, redis_server, served
from tests.support.model_server import ModelRequest, ModelServer, model_server
from tests.support.model_turns import Call, Turn, complete

TURNS, ROUNDS, THINKS_S = 15, 4, 0.15
WAIT_S = 60.0


@dataclass
class Thinking:
    """The model server: it records when each request arrived and when it sent its first words."""

    asked_at: list[float] = field(default_factory=list)
    said_at: list[float] = field(default_factory=list)

    def __call__(self, asked: ModelRequest) -> Turn:
        """Answer with the next turn."""
        self.asked_at.append(time.perf_counter())
        time.sleep(THINKS_S)
        self.said_at.append(time.perf_counter())
        number = len(self.asked_at)
        if number > TURNS:
            return complete()
        return Turn("I look at the project.", [Call("get_runtime_info", {}, f"c{number}")])

    @property
    def periods(self) -> list[float]:
        """Return the milliseconds between two requests, without the first two, which open
        connections."""
        pairs = zip(self.asked_at[2:], self.asked_at[3:], strict=False)
        return [(later - earlier) * 1000 for earlier, later in pairs]


def heard_after(said_at: list[float], heard: Mapping[int, float]) -> list[float]:
    """Return the milliseconds from the first words of each turn until the reader received them."""
    return [(heard[n] - at) * 1000 for n, at in enumerate(said_at[:TURNS]) if n >= 2]


def ours(model: ModelServer, web: str, token: str) -> tuple[list[float], list[float]]:
    """Run an agent; return the times between its requests, and when its words were received."""
    from decisions.identity.principals import local_principal
    from runs.submission.services import submit_run

    model.answer = thinking = Thinking()
    run_id = submit_run(
        principal=local_principal(),
        template_id="agent_task",
        inputs={"goal": "Look."},
        options={"mode": "async"},
    ).run_id
    heard: dict[int, float] = {}
    reader = threading.Thread(
        target=_hear, args=(f"{web}/api/v1/runs/{run_id}/events", token, heard)
    )
    reader.start()
    reader.join(WAIT_S)
    return thinking.periods, heard_after(thinking.said_at, heard)


def _hear(url: str, token: str, heard: dict[int, float]) -> None:
    headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
    with httpx2.stream("GET", url, headers=headers, timeout=WAIT_S) as answer:
        for line in answer.iter_lines():
            if not line.startswith("data: "):
                continue
            told = json.loads(line[6:])
            if told["type"] == "chatDelta" and told["data"]["content"]:
                heard.setdefault(told["data"]["step"] // 2, time.perf_counter())
            if told["type"].startswith("run.succeeded") or told["type"] == "run.failed":
                return


def bare(model: ModelServer, bodies: list[Any]) -> tuple[list[float], list[float]]:
    """Send the same requests one after another and ignore the answers."""
    model.answer = thinking = Thinking()
    heard: dict[int, float] = {}
    with httpx2.Client(timeout=WAIT_S) as client:
        for number, body in enumerate(bodies):
            url = f"{model.url}/v1/chat/completions"
            with client.stream("POST", url, json=body) as answer:
                for line in answer.iter_lines():
                    if '"content": "I' in line:
                        heard.setdefault(number, time.perf_counter())
    return thinking.periods, heard_after(thinking.said_at, heard)


def _wait_for(url: str) -> None:
    """Wait until the web answers."""
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        with contextlib.suppress(httpx2.TransportError):
            if httpx2.get(url).status_code == httpx2.codes.OK:
                return
        time.sleep(0.1)
    raise TimeoutError(url)


def rounds(model: ModelServer, web: str, token: str) -> Mapping[str, list[list[float]]]:
    """Measure both in turn; return {ours, floor}: times between requests, and milliseconds until
    the first words were received."""
    found: dict[str, list[list[float]]] = {"ours": [[], []], "floor": [[], []]}
    ours(model, web, token)  # the first run opens connections that later runs use
    for _ in range(ROUNDS):
        model.requests.clear()
        mine = ours(model, web, token)
        theirs = bare(model, [one.body for one in model.requests])
        for name, pair in (("ours", mine), ("floor", theirs)):
            for kept, figures in zip(found[name], pair, strict=True):
                kept += figures
    return found


def main() -> None:
    """Measure and report."""
    with contextlib.ExitStack() as stack:
        home, folder = (stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(2))
        postgres = stack.enter_context(served(DurablePostgresServer, DurablePostgresServer.make))
        redis, model = stack.enter_context(redis_server()), stack.enter_context(model_server())
        env = environment(postgres.url, redis.url, home) | {
            "CONTINUITY_WORKSPACE": folder,
            "CONTINUITY_LLM_MODEL": "scripted",
            "CONTINUITY_LLM_BASE_URL": f"{model.url}/v1",
        }
        os.environ.update(env, DJANGO_SETTINGS_MODULE="config.settings")
        migrate = [sys.executable, "manage.py", "migrate", "-v0", "--skip-checks"]
        subprocess.run(migrate, env=env, cwd=ROOT, check=True)
        import django  # import late: the environment has to be set first

        django.setup()
        from decisions.identity.principals import create_token

        port = free_port()
        for command in (["serve", "--port", str(port)], ["worker"], ["scheduler"]):
            stack.enter_context(process("manage.py", *command, env=env))
        web = f"http://127.0.0.1:{port}"
        _wait_for(f"{web}/healthz")
        found = rounds(model, web, create_token(name="bench"))
    floor = statistics.median(found["floor"][0])
    report(
        "agent_turns",
        turn_period_ms={name: shape(periods) for name, (periods, _) in found.items()},
        overhead_ms=shape([period - floor for period in found["ours"][0]]),
        first_words_ms={name: shape(heard) for name, (_, heard) in found.items()},
        goals={"overhead_ms p50": "<= 25", "first_words_ms p50": "<= 50"},
    )


if __name__ == "__main__":
    main()
