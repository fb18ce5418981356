"""The liveness probe of workers and schedulers, and secrets from files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import override_settings

from decisions.foundation.infra import processes
from decisions.foundation.security.secret_files import SecretFileUnusable, read_secret_files


@pytest.fixture(autouse=True)
def _home(tmp_path: Path) -> Iterator[None]:
    with override_settings(CONTINUITY_HOME=tmp_path):
        yield


def test_a_process_that_works_passes_the_probe(capsys: pytest.CaptureFixture[str]) -> None:
    processes.mark_alive("worker")
    call_command("probe", "worker")
    assert "A worker worked 0 s ago." in capsys.readouterr().out


def test_a_process_that_hangs_or_never_worked_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    processes.mark_alive("worker")
    with pytest.raises(SystemExit):
        call_command("probe", "scheduler")
    later = time.monotonic() + 121
    monkeypatch.setattr("decisions.foundation.infra.processes.time.monotonic", lambda: later)
    with pytest.raises(SystemExit):
        call_command("probe", "worker")


def test_a_secret_is_read_from_the_file_that_its_variable_names(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")
    environ = {"CONTINUITY_RUNNER_TOKEN_FILE": str(tmp_path / "key"), "OTHER_FILE": "stays"}
    read_secret_files(environ)
    assert environ == {"CONTINUITY_RUNNER_TOKEN": "secret", "OTHER_FILE": "stays"}


@pytest.mark.parametrize(
    ("environ", "reason"),
    [
        ({"REDIS_URL_FILE": "/no/such/file"}, "REDIS_URL_FILE=/no/such/file cannot be read"),
        ({"REDIS_URL_FILE": "/dev/null"}, "is empty"),
        ({"REDIS_URL_FILE": "/dev/null", "REDIS_URL": "x"}, "are both set"),
    ],
)
def test_a_file_without_a_secret_is_refused(environ: dict[str, str], reason: str) -> None:
    with pytest.raises(SecretFileUnusable, match=reason):
        read_secret_files(environ)
