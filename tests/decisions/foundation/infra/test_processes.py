"""Detect with certainty that a process of this machine has ended; report nothing that is
uncertain."""

from __future__ import annotations

import subprocess

import pytest

from decisions.foundation.infra.processes import _identity, has_ended, process_identity


def test_an_ended_process_is_gone_even_before_it_is_reaped() -> None:
    process = subprocess.Popen(["sleep", "60"])
    identity = _identity(process.pid)
    assert identity
    assert not has_ended(identity)
    process.kill()
    process.communicate()
    assert has_ended(identity)
    zombie = subprocess.Popen(["true"])
    identity = f"{identity.rsplit(':', 2)[0]}:{zombie.pid}:1"
    while _identity(zombie.pid) is not None:
        pass
    assert has_ended(identity)
    zombie.wait()


def test_this_process_lives() -> None:
    assert not has_ended(process_identity())


def test_another_process_with_the_same_number_is_another_process() -> None:
    boot, namespace, pid, started = process_identity().split(":")
    assert has_ended(f"{boot}:{namespace}:{pid}:{int(started) - 1}")


@pytest.mark.parametrize("part", [0, 1])
def test_a_process_of_another_machine_or_container_is_unknown(part: int) -> None:
    parts = process_identity().split(":")
    parts[part], parts[2] = "other", "999999999"
    assert not has_ended(":".join(parts))


@pytest.mark.parametrize("identity", ["unknown::12:", "a:b:c:d", ":::"])
def test_an_unreadable_mark_ends_no_worker(identity: str) -> None:
    assert not has_ended(identity)
