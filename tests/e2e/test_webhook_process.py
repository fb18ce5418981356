"""Test webhooks across real processes: a run ends in one, the scheduler notifies the receiver."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.temporary_home import ROOT, temporary_home
from tests.support.waiting import eventually
from tests.support.webhook_receiver import run_receiver

MAKE = (
    "from decisions.identity.principals import local_principal;"
    "from runs.webhooks.services import create_webhook;"
    "create_webhook(principal=local_principal(), url={url!r})"
)


def test_the_scheduler_sends_a_webhook_for_a_run_that_another_process_ended(tmp_path: Path) -> None:
    env = {
        "REDIS_URL": os.environ["REDIS_URL"],
        "CONTINUITY_TEMPLATE_MODULES": "tests.support.step_template",
    }
    with (
        temporary_home(tmp_path, CONTINUITY_REDIS_PREFIX="hooks:", **env) as home,
        run_receiver() as there,
    ):
        assert home.run("migrate").returncode == 0
        made = home.run("shell", "-c", MAKE.format(url=there.url))
        assert made.returncode == 0, made.stderr
        scheduler = home.start("scheduler")
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.event_writer", "1", "1"],
            cwd=ROOT,
            env=home.env,
            input="go\n",
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        [run_id] = json.loads(done.stdout.splitlines()[0])
        assert eventually(lambda: len(there.requests) == 1)
        told = json.loads(there.requests[0].body)
        assert (told["type"], told["data"]["runId"]) == ("run.canceled", run_id)
        assert scheduler.end(signal.SIGTERM) == 0
    assert len(there.requests) == 1
