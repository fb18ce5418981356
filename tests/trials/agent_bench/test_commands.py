"""The commands of the benchmark, and the site of the jobs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.trials.agent_bench import __main__ as forty_tasks
from tests.trials.agent_bench.jobs import __main__ as twenty_jobs
from tests.trials.agent_bench.jobs.addresses import Addresses
from tests.trials.agent_bench.jobs.first_ten import fact
from tests.trials.agent_bench.jobs.host import Counted
from tests.trials.agent_bench.jobs.job_site import serve_job_site
from tests.trials.agent_bench.jobs.right_answers import MESSAGE
from tests.trials.agent_bench.site import SiteRequest


def test_an_unknown_task_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        forty_tasks.main(["--model", "scripted", "--only", "table", "--only", "tabel"])
    assert "no task has this name or kind: tabel" in capsys.readouterr().err


@pytest.mark.parametrize("only", ["21", "1,x", ""])
def test_an_unknown_job_is_refused(
    only: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["jobs", "--manual", ".", "--only", only])
    with pytest.raises(SystemExit, match="2"):
        twenty_jobs.main()
    assert "--only" in capsys.readouterr().err


def test_a_lost_server_is_the_answer_of_its_job_alone(tmp_path: Path) -> None:
    """This server ends because a setting is no number."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "CONTINUITY_HOME": str(tmp_path),
        "CONTINUITY_MAX_CONCURRENT_RUNS": "many",
    }
    answer = twenty_jobs.answer_of(fact, env, Counted(), Addresses("", "", 0))
    assert str(answer).startswith("the host was stuck: ConnectionError('initialize:")


@pytest.mark.parametrize("mail", ["ada", "ada@", "@example.org", "ada@example", "a b@example.org"])
def test_the_form_of_the_jobs_refuses_what_is_no_address(mail: str) -> None:
    with serve_job_site() as (site, data):

        def send(address: str) -> str:
            form = {**MESSAGE, "mail": address, "agree": "on"}
            return str(site.respond(SiteRequest("POST", "/contact", {}, form, {}, {}, {})).body)

        assert "Mail: enter an address." in send(mail)
        assert site.state["messages"] == []
        assert data.receipt in send(MESSAGE["mail"])
