"""Run the commands of docs/docker-runner.md and docs/targets.md as written, except for the
addresses, the folder and the interpreter.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.installation.temporary_home import ROOT, TemporaryHome, temporary_home
from tests.support.runners.docker_runner_process import TIMEOUT_S, best_isolation

pytestmark = [pytest.mark.timeout(300)]


def commands(document: str, **values: str) -> list[str]:
    """Return the shell blocks of a document with the test's addresses and folder filled in."""
    text = (ROOT / "docs" / document).read_text("utf-8")
    values = {"runner": "127.0.0.1:18081", "site": "127.0.0.1:8000", **values}
    replacements = {
        "127.0.0.1:18081": values["runner"],
        "127.0.0.1:8000": values["site"],
        ".venv/bin/python": shlex.quote(sys.executable),
        "/srv/runner": shlex.quote(values.get("folder", "/srv/runner")),
    }
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
    for documented, replacement in replacements.items():
        blocks = [block.replace(documented, replacement) for block in blocks]
    return blocks


def run(block: str, env: dict[str, str]) -> str:
    """Run a block, assert that it succeeds, and return what it printed."""
    completed = subprocess.run(
        ["bash", "-euc", block],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def values(text: str) -> list[Any]:
    """Return the JSON values of a text in order."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while at < len(text.rstrip()):
        value, at = decoder.raw_decode(text, at + len(text[at:]) - len(text[at:].lstrip()))
        found.append(value)
    return found


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[str]:
    """Start the runner of the document's first block on a free port and return its address."""
    if best_isolation(tmp_path) != "bubblewrap":
        pytest.skip("the document's runner needs bubblewrap")
    block = commands("docker-runner.md", folder=str(tmp_path / "hands"))[0]
    line = block.replace("--root", "--port 0 --root")
    process = subprocess.Popen(
        ["bash", "-euc", line], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    try:
        found = re.search(r"http://([0-9.:]+)", process.stdout.readline())
        assert found
        yield found[1]
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=TIMEOUT_S)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[TemporaryHome]:
    with temporary_home(tmp_path / "home") as created:
        yield created


def test_a_runner_answers_the_commands_as_its_document_describes(runner: str) -> None:
    block = commands("docker-runner.md", runner=runner)[1]
    health, answer = values(run(block, dict(os.environ)))
    assert (health["ok"], health["isolation"]) == (True, "bubblewrap")
    assert "".join(update["delta"] for update in answer["updates"]) == "1\n2\n3\n"
    assert answer["result"]["output"]["stdout"] == "1\n2\n3\n"


@pytest.mark.slow
def test_a_target_is_created_and_called_as_its_document_describes(
    runner: str, home: TemporaryHome
) -> None:
    address = home.start("up").wait_until_ready()
    token = home.run("create_token", "docs").stdout.strip()
    site = address.removeprefix("http://")
    make, call = commands("targets.md", runner=runner, site=site)
    assert run(make, home.env).strip() == "target_builder"
    (answer,) = values(run(call, {**home.env, "TOKEN": token}))
    assert (answer["ok"], answer["output"]["stdout"]) == (True, "hello")
