"""`make test` names the programs that it found, and in one sentence one that is missing."""

from __future__ import annotations

import pytest

from tests import __main__ as test_command
from tests import programs


def test_the_programs_are_listed_with_their_versions() -> None:
    line = programs.describe_programs()
    assert line.startswith("Python 3.")
    assert all(name in line for name in ("PostgreSQL 1", "Chromium ", "CJK font"))


def test_a_missing_server_ends_the_command_with_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find_nothing() -> None:
        raise RuntimeError("No PostgreSQL server was found.")

    monkeypatch.setattr(programs, "postgres_folder", find_nothing)
    assert test_command.main([]) == 1
    assert capsys.readouterr().out == "No PostgreSQL server was found.\n"
