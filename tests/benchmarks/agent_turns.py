"""Measure the overhead of an agent's turn and the delay of its first words, against a bare client
that sends the same requests to the same model server.

The model waits for 150 ms, streams a few words and calls a tool that reads nothing. So a turn is:
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

from tests.benchmarks.event_stream import ROOT, environment, start_server
from tests.benchmarks.rounds import percentiles, report
from tests.services import DurablePostgresServer, free_port, redis_server, served
from tests.support.agent.model_server import ModelRequest, ModelServer, model_server
from tests.support.agent.model_turns import Call, Turn, complete

TURNS, ROUNDS, MODEL_DELAY_S = 15, 4, 0.15
WAIT_S = 60.0


@dataclass
class TimedModel:
    """The model server: it records when each request arrived and when it sent its first words."""

    requested_at: list[float] = field(default_factory=list)
    sent_at: list[float] = field(default_factory=list)

    def __call__(self, request: ModelRequest) -> Turn:
        """Answer with the next turn."""
        self.requested_at.append(time.perf_counter())
        time.sleep(MODEL_DELAY_S)
        self.sent_at.append(time.perf_counter())
        number = len(self.requested_at)
        if number > TURNS:
            return complete()
        return Turn("I look at the project.", [Call("get_runtime_info", {}, f"c{number}")])

    @property
    def periods(self) -> list[float]:
        """Return the milliseconds between two requests, without the first two, which open
        connections."""
        pairs = zip(self.requested_at[2:], self.requested_at[3:], strict=False)
        return [(later - earlier) * 1000 for earlier, later in pairs]


def delays_after(sent_at: list[float], received_at: Mapping[int, float]) -> list[float]:
    """Return the milliseconds from the first words of each turn until the reader received them."""
    return [(received_at[n] - at) * 1000 for n, at in enumerate(sent_at[:TURNS]) if n >= 2]


def ours(model: ModelServer, web: str, token: str) -> tuple[list[float], list[float]]:
    """Run an agent; return the times between its requests, and when its words were received."""
    from decisions.identity.principals import local_principal
    from runs.submission.submit import submit_run

    model.answer = timed_model = TimedModel()
    run_id = submit_run(
        principal=local_principal(),
        template_id="agent_task",
        inputs={"goal": "Look."},
        options={"mode": "async"},
    ).run_id
    received_at: dict[int, float] = {}
    reader = threading.Thread(
        target=_read_words, args=(f"{web}/api/v1/runs/{run_id}/events", token, received_at)
    )
    reader.start()
    reader.join(WAIT_S)
    return timed_model.periods, delays_after(timed_model.sent_at, received_at)


def _read_words(url: str, token: str, received_at: dict[int, float]) -> None:
    headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
    with httpx2.stream("GET", url, headers=headers, timeout=WAIT_S) as answer:
        for line in answer.iter_lines():
            if not line.startswith("data: "):
                continue
            event = json.loads(line[6:])
            if event["type"] == "chatDelta" and event["data"]["content"]:
                received_at.setdefault(event["data"]["step"] // 2, time.perf_counter())
            if event["type"].startswith("run.succeeded") or event["type"] == "run.failed":
                return


def floor(model: ModelServer, bodies: list[Any]) -> tuple[list[float], list[float]]:
    """Send the same requests one after another and ignore the answers."""
    model.answer = timed_model = TimedModel()
    received_at: dict[int, float] = {}
    with httpx2.Client(timeout=WAIT_S) as client:
        for number, body in enumerate(bodies):
            url = f"{model.url}/v1/chat/completions"
            with client.stream("POST", url, json=body) as answer:
                for line in answer.iter_lines():
                    if '"content": "I' in line:
                        received_at.setdefault(number, time.perf_counter())
    return timed_model.periods, delays_after(timed_model.sent_at, received_at)


def _wait_for(url: str) -> None:
    """Wait until the web answers."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx2.TransportError):
            if httpx2.get(url).status_code == httpx2.codes.OK:
                return
        time.sleep(0.1)
    raise TimeoutError(url)


def rounds(model: ModelServer, web: str, token: str) -> Mapping[str, list[list[float]]]:
    """Measure both in turn; return {ours, floor}: times between requests, and milliseconds until
    the first words were received."""
    times: dict[str, list[list[float]]] = {"ours": [[], []], "floor": [[], []]}
    ours(model, web, token)  # the first run opens connections that later runs use
    for _ in range(ROUNDS):
        model.requests.clear()
        our_times = ours(model, web, token)
        floor_times = floor(model, [request.body for request in model.requests])
        for name, pair in (("ours", our_times), ("floor", floor_times)):
            for total, new in zip(times[name], pair, strict=True):
                total += new
    return times


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
            stack.enter_context(start_server("manage.py", *command, env=env))
        web = f"http://127.0.0.1:{port}"
        _wait_for(f"{web}/healthz")
        times = rounds(model, web, create_token(name="bench", trust="local"))
    floor_ms = statistics.median(times["floor"][0])
    report(
        "agent_turns",
        turn_period_ms={name: percentiles(periods) for name, (periods, _) in times.items()},
        overhead_ms=percentiles([period - floor_ms for period in times["ours"][0]]),
        first_words_ms={name: percentiles(delays) for name, (_, delays) in times.items()},
        goals={"overhead_ms p50": "<= 25", "first_words_ms p50": "<= 50"},
    )


if __name__ == "__main__":
    main()
