"""Test webhooks across real processes: a run ends in one, the scheduler notifies the receiver."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.installation.temporary_home import ROOT, temporary_home
from tests.support.runs.waiting import eventually
from tests.support.runs.webhook_receiver import run_receiver

CREATE_WEBHOOK = (
    "from decisions.identity.principals import local_principal;"
    "from runs.webhooks.services import create_webhook;"
    "create_webhook(principal=local_principal(), url={url!r})"
)


@pytest.mark.slow
def test_the_scheduler_sends_a_webhook_for_a_run_that_another_process_ended(tmp_path: Path) -> None:
    env = {
        "REDIS_URL": os.environ["REDIS_URL"],
        "CONTINUITY_TEMPLATE_MODULES": "tests.support.runs.step_template",
    }
    with (
        temporary_home(tmp_path, CONTINUITY_REDIS_PREFIX="hooks:", **env) as home,
        run_receiver() as receiver,
    ):
        assert home.run("migrate").returncode == 0
        created = home.run("shell", "-c", CREATE_WEBHOOK.format(url=receiver.url))
        assert created.returncode == 0, created.stderr
        scheduler = home.start("scheduler")
        writer = subprocess.run(
            [sys.executable, "-m", "tests.support.runs.event_writer", "1", "1"],
            cwd=ROOT,
            env=home.env,
            input="go\n",
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        [run_id] = json.loads(writer.stdout.splitlines()[0])
        assert eventually(lambda: len(receiver.requests) == 1)
        message = json.loads(receiver.requests[0].body)
        assert (message["type"], message["data"]["runId"]) == ("run.canceled", run_id)
        assert scheduler.stop(signal.SIGTERM) == 0
    assert len(receiver.requests) == 1
