"""The provider's API key is only in the request to the provider: no row, file, log line, Redis
message or page contains it, whatever the provider answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from artifacts.models import Artifact
from artifacts.storage.blobs import open_blob
from runs.models import Run, RunEvent
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import READ
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.audit.secret_search import collect_logs, every_file, every_row, find_secret

KEY = 'sk-canary-&<7a1f0c>"93'  # its spelling differs in every encoding a text can have
ERROR_BODY = (
    f'{{"error": {{"message": "{KEY[:10]} no: {KEY.replace(chr(34), chr(92) + chr(34))}"}}}}'
)


def test_a_key_that_the_model_outputs_is_masked_in_every_form(
    model: ModelServer, submit_goal: Callable[..., str], worker: WorkerProcess, agent_settings: Any
) -> None:
    agent_settings.LLM = replace(agent_settings.LLM, api_key=KEY)
    text = f"My key is {KEY}{KEY[:9]}. I say {KEY}"
    calls = [Call("read_file", {"path": KEY}, "r2"), Call("read_result", {"artifactId": KEY}, "r3")]
    model.script = [Turn(text, [READ, *calls], piece=5, pause_s=0.06), complete(text)]
    with collect_logs() as log:
        run_id = submit_goal()
        worker.work()
    run = Run.objects.get(id=run_id)
    assert run.result["answer"] == f"My key is ***{KEY[:9]}. I say ***"
    events = RunEvent.objects.filter(run_id=run_id, type="chatDelta").order_by("seq")
    words = "".join(row.data["content"] for row in events)
    assert words == f"My key is ***{KEY[:9]}. I say ***"
    sources: dict[str, str | bytes] = {
        "a row": every_row(),
        "a file": every_file(),
        "the log": "\n".join(log),
    }
    assert find_secret(KEY, sources) == []


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_the_api_key_is_only_in_the_request(
    model: ModelServer,
    submit_goal: Callable[..., str],
    worker: WorkerProcess,
    agent_settings: Any,
    provider: Any,
) -> None:
    base = f"{model.url}/v1" if provider == "openai" else model.url
    agent_settings.LLM = replace(agent_settings.LLM, provider=provider, base_url=base, api_key=KEY)
    bad = [Turn(status=status, body=ERROR_BODY) for status in (401, 404, 400)]
    cut = Turn("", [READ], cut_at=400)
    scripts = [
        [Turn("I look.", [READ]), complete()],
        *([turn] for turn in bad),
        [cut, cut],
        [Turn(status=503, body=ERROR_BODY, headers={"Retry-After": "3600"})],
    ]
    with collect_logs() as log:
        runs = []
        for script in scripts:
            model.script = list(script)
            runs.append(submit_goal())
            worker.work()
    statuses = [Run.objects.get(id=run_id).status for run_id in runs]
    assert statuses == ["succeeded"] + ["failed"] * 5
    assert all(request.key == KEY for request in model.requests)
    assert any("chat/completions" in line or "/messages" in line for line in log)  # it does log
    sources: dict[str, str | bytes] = {
        "a row": every_row(),
        "a file": every_file(),
        "the log": "\n".join(log),
    }
    assert find_secret(KEY, sources) == []


def test_a_key_in_a_long_result_is_masked_in_its_artifact(
    model: ModelServer,
    submit_goal: Callable[..., str],
    worker: WorkerProcess,
    project: Path,
    agent_settings: Any,
) -> None:
    agent_settings.LLM = replace(agent_settings.LLM, api_key=KEY)
    (project / "long.txt").write_text(f"line {KEY}\n" * 2000)
    model.script = [Turn("", [Call("read_file", {"path": "long.txt"}, "r")]), complete()]
    run_id = submit_goal()
    worker.work()
    stored = Artifact.objects.get(run_id=run_id, name="output.json")
    file = open_blob(stored.sha256, size_bytes=stored.size_bytes)
    assert file is not None
    with file:
        content = file.read()
    assert b"line ***" in content
    assert find_secret(KEY, {"the artifact": content}) == []
