"""What needs no engine: the commands are in the documentation, and where no engine can be started,
the trial says so in one sentence.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trials.fleet_trial import __main__ as trial
from tests.trials.fleet_trial import stand_ins
from tests.trials.fleet_trial.documented import block_with, lines_of


@pytest.mark.parametrize(
    "text",
    [
        "docker compose up -d --build",
        "add_target",
        "--scale worker=",
        "openssl req -x509",
        "nginx -s reload",
        "deploy/upgrade",
        "scheduler backup",
        "scheduler restore",
    ],
)
def test_the_documentation_has_each_command_of_the_trial_once(text: str) -> None:
    assert lines_of(block_with(text))


def test_the_first_account_the_token_and_the_check_are_one_block_of_three_commands() -> None:
    assert len(lines_of(block_with("createsuperuser"))) == 3


def test_there_is_a_stand_in_for_each_image_that_another_program_provides() -> None:
    built = (stand_ins.ROOT / "Dockerfile").read_text() + (
        stand_ins.ROOT / "deploy/proxy/Dockerfile"
    ).read_text()
    bases = {line.split()[1] for line in built.splitlines() if line.startswith("FROM ")}
    assert bases <= set(stand_ins.image_tags())


def test_without_an_engine_and_without_root_the_trial_says_so_and_exits_with_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trial, "OUTSIDE", (Path("/no/such/folder"),))
    monkeypatch.setattr("tests.trials.fleet_trial.engine.shutil.which", lambda name: None)
    monkeypatch.setattr("tests.trials.fleet_trial.engine.os.geteuid", lambda: 1000)
    monkeypatch.setattr("sys.argv", ["fleet_trial"])
    assert trial.main() == 3
    assert capsys.readouterr().out == "No Docker engine answers, and only root can start one.\n"
