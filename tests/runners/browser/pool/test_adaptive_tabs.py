"""The number of tabs that a batch uses at the same time."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from runners.browser.pool import adaptive, cpu
from runners.browser.pool.adaptive import AdaptiveConcurrency
from runners.browser.pool.cpu import CpuLoad, cpu_seconds, usable_cores


class Machine:
    """A clock, cores and a CPU load that the test controls."""

    def __init__(self) -> None:
        self.now = 0.0
        self.used = 0.0
        self.cores = 2
        self.measures = True

    def cpu_seconds(self) -> tuple[float, float] | None:
        return (self.used, self.now) if self.measures else None

    def run(self, seconds: float, *, busy: float) -> None:
        self.now += seconds
        self.used += seconds * busy

    def batch(self, requested: int, *, cores: int = 2) -> AdaptiveConcurrency:
        self.cores = cores
        return AdaptiveConcurrency(requested)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return the machine on which batches run."""
    machine = Machine()
    clock = SimpleNamespace(monotonic=lambda: machine.now)
    monkeypatch.setattr(cpu, "time", clock)
    monkeypatch.setattr(cpu, "cpu_seconds", machine.cpu_seconds)
    monkeypatch.setattr(adaptive, "time", clock)
    monkeypatch.setattr(adaptive, "usable_cores", lambda: machine.cores)
    monkeypatch.setattr(adaptive, "_loads", {os.getpid(): CpuLoad()})
    return machine


def tabs_after(
    machine: Machine, batch: AdaptiveConcurrency, *, busy: float, pages: int = 20
) -> int:
    for _ in range(pages):
        machine.run(0.6, busy=busy)
        batch.record(0.3)
    return batch.current()


def test_a_batch_starts_with_the_requested_number_of_tabs() -> None:
    assert [AdaptiveConcurrency(requested).current() for requested in (1, 3, 5)] == [1, 3, 5]


def test_a_saturated_machine_keeps_two_tabs_a_core(machine: Machine) -> None:
    assert tabs_after(machine, machine.batch(5), busy=1.0) == 4
    assert tabs_after(machine, machine.batch(5, cores=8), busy=1.0) == 5


def test_a_batch_that_waits_for_the_network_gets_all_its_tabs_back(machine: Machine) -> None:
    batch = machine.batch(5)
    assert tabs_after(machine, batch, busy=1.0) == 4
    assert tabs_after(machine, batch, busy=0.3) == 5


def test_the_number_of_tabs_does_not_change_at_a_moderate_load(machine: Machine) -> None:
    batch = machine.batch(5)
    assert tabs_after(machine, batch, busy=0.9) == 5
    tabs_after(machine, batch, busy=1.0)
    assert tabs_after(machine, batch, busy=0.9) == 4


def test_batches_of_one_process_share_its_cores(machine: Machine) -> None:
    batches = [machine.batch(5) for _ in range(4)]
    assert tabs_after(machine, batches[0], busy=1.0) == 1
    del batches[1:]
    assert tabs_after(machine, batches[0], busy=0.1) == 5


def test_the_number_of_tabs_changes_by_at_most_one_per_page_duration(machine: Machine) -> None:
    batch = machine.batch(5, cores=1)
    machine.run(0.6, busy=1.0)
    batch.record(3.0)
    assert batch.current() == 5
    machine.run(2.5, busy=1.0)
    for _ in range(5):
        batch.record(3.0)
    assert batch.current() == 4


def test_a_batch_keeps_its_requested_tabs_when_the_load_is_unknown(machine: Machine) -> None:
    machine.measures = False
    assert tabs_after(machine, machine.batch(5), busy=1.0) == 5


def test_the_load_is_measured_over_at_least_half_a_second(machine: Machine) -> None:
    load = CpuLoad()
    machine.run(0.4, busy=1.0)
    assert load.busy() is None
    machine.run(0.4, busy=0.5)
    assert load.busy() == pytest.approx(0.75)
    machine.run(0.2, busy=0.0)
    assert load.busy() == pytest.approx(0.75)


def set_quota(monkeypatch: pytest.MonkeyPatch, folder: Path, line: str) -> None:
    monkeypatch.setattr(cpu, "CGROUP", folder)
    (folder / "cpu.max").write_text(line)
    (folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 2000000\n")


def test_a_container_cpu_quota_takes_precedence_over_the_machines_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_quota(monkeypatch, tmp_path, "150000 100000\n")
    used, _ = cpu_seconds() or (0, 0)
    assert used == 2.5
    assert usable_cores() <= 2


@pytest.mark.parametrize("line", ["max 100000\n", "garbage\n", ""])
def test_without_a_quota_the_machine_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3\n")
    monkeypatch.setattr(cpu, "STAT", stat)
    set_quota(monkeypatch, tmp_path, line)
    assert cpu_seconds() == (150.0, 1000.0)


def test_the_cpu_time_is_unknown_without_cgroup_and_proc_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu, "CGROUP", tmp_path / "none")
    monkeypatch.setattr(cpu, "STAT", tmp_path / "none")
    assert cpu_seconds() is None


def test_the_measurement_works_on_this_machine() -> None:
    first, second = cpu_seconds(), cpu_seconds()
    assert usable_cores() >= 1
    assert first is None or (second is not None and second >= first)
