"""`make test` names the programs that it found, and in one sentence one that is missing."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from tests import __main__ as test_command
from tests import programs


def test_the_programs_are_listed_with_their_versions() -> None:
    line = programs.describe_programs()
    found = re.findall(r"(Python|PostgreSQL|redis-server|valkey-server|Chromium) \d+\.\d+", line)
    assert len(found) == 4
    assert "CJK font" in line


def test_a_missing_server_ends_the_command_with_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find_nothing() -> None:
        raise RuntimeError("No PostgreSQL server was found.")

    def run_nothing(*_: object) -> None:
        pytest.fail("the tests were started")

    monkeypatch.setattr(programs, "postgres_folder", find_nothing)
    monkeypatch.setattr(test_command, "run_part", run_nothing)
    assert test_command.main([]) == 1
    assert capsys.readouterr().out == "No PostgreSQL server was found.\n"


@pytest.mark.parametrize(
    ("codes", "exit_code"),
    [
        ([0, 0], 0),
        ([0, 5], 0),  # no test of the second part was chosen
        ([5, 5], 1),
        ([1, 0], 1),
        ([-9, 0], 1),  # a part was killed
        ([2], 1),
    ],
)
def test_the_command_fails_if_a_part_fails_or_no_test_ran(
    monkeypatch: pytest.MonkeyPatch, codes: Sequence[int], exit_code: int
) -> None:
    results = iter(codes)
    monkeypatch.setattr(test_command, "run_part", lambda *_: (next(results), "a line"))
    monkeypatch.setattr(test_command, "describe_programs", lambda: "programs")
    assert test_command.main([]) == exit_code
