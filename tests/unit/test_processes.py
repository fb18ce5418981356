"""Detect with certainty that a process of this machine has ended; report nothing that is
uncertain."""

from __future__ import annotations

import subprocess

import pytest

from decisions.infra.processes import _identity, has_ended, process_identity


def test_an_ended_process_is_gone_even_before_it_is_reaped() -> None:
    process = subprocess.Popen(["sleep", "60"])
    mark = _identity(process.pid)
    assert mark
    assert not has_ended(mark)
    process.kill()
    process.communicate()
    assert has_ended(mark)
    unburied = subprocess.Popen(["true"])
    mark = f"{mark.rsplit(':', 2)[0]}:{unburied.pid}:1"
    while _identity(unburied.pid) is not None:
        pass
    assert has_ended(mark)
    unburied.wait()


def test_this_process_lives() -> None:
    assert not has_ended(process_identity())


def test_another_process_with_the_same_number_is_another_process() -> None:
    boot, namespace, pid, started = process_identity().split(":")
    assert has_ended(f"{boot}:{namespace}:{pid}:{int(started) - 1}")


@pytest.mark.parametrize("part", [0, 1])
def test_a_process_of_another_machine_or_container_is_unknown(part: int) -> None:
    marks = process_identity().split(":")
    marks[part], marks[2] = "other", "999999999"
    assert not has_ended(":".join(marks))


@pytest.mark.parametrize("mark", ["unknown::12:", "a:b:c:d", ":::"])
def test_an_unreadable_mark_ends_no_worker(mark: str) -> None:
    assert not has_ended(mark)
