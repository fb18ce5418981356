"""The number of tabs that a batch uses at the same time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runners.browser.pool.adaptive import AdaptiveConcurrency
from runners.browser.pool.cpu import CpuLoad, cpu_seconds, usable_cores


class Machine:
    """A clock and a CPU load that the test controls."""

    def __init__(self) -> None:
        self.now = 0.0
        self.used = 0.0
        self.load = CpuLoad(lambda: (self.used, self.now), lambda: self.now)

    def run(self, seconds: float, *, busy: float) -> None:
        self.now += seconds
        self.used += seconds * busy

    def batch(self, requested: int, *, cores: int = 2) -> AdaptiveConcurrency:
        return AdaptiveConcurrency(requested, load=self.load, cores=cores, clock=lambda: self.now)


def tabs_after(
    machine: Machine, batch: AdaptiveConcurrency, *, busy: float, pages: int = 20
) -> int:
    for _ in range(pages):
        machine.run(0.6, busy=busy)
        batch.record(0.3)
    return batch.current()


def test_a_batch_starts_with_the_requested_number_of_tabs() -> None:
    assert [Machine().batch(requested).current() for requested in (1, 3, 5)] == [1, 3, 5]


def test_a_saturated_machine_keeps_two_tabs_a_core() -> None:
    machine = Machine()
    assert tabs_after(machine, machine.batch(5), busy=1.0) == 4
    assert tabs_after(machine, machine.batch(5, cores=8), busy=1.0) == 5


def test_a_batch_that_waits_for_the_network_gets_all_its_tabs_back() -> None:
    machine = Machine()
    batch = machine.batch(5)
    assert tabs_after(machine, batch, busy=1.0) == 4
    assert tabs_after(machine, batch, busy=0.3) == 5


def test_the_number_of_tabs_does_not_change_at_a_moderate_load() -> None:
    machine = Machine()
    batch = machine.batch(5)
    assert tabs_after(machine, batch, busy=0.9) == 5
    tabs_after(machine, batch, busy=1.0)
    assert tabs_after(machine, batch, busy=0.9) == 4


def test_batches_of_one_process_share_its_cores() -> None:
    machine = Machine()
    batches = [machine.batch(5) for _ in range(4)]
    assert tabs_after(machine, batches[0], busy=1.0) == 1
    del batches[1:]
    assert tabs_after(machine, batches[0], busy=0.1) == 5


def test_the_number_of_tabs_changes_by_at_most_one_per_page_duration() -> None:
    machine = Machine()
    batch = machine.batch(5, cores=1)
    machine.run(0.6, busy=1.0)
    batch.record(3.0)
    assert batch.current() == 5
    machine.run(2.5, busy=1.0)
    for _ in range(5):
        batch.record(3.0)
    assert batch.current() == 4


def test_a_batch_keeps_its_requested_tabs_when_the_load_is_unknown() -> None:
    machine = Machine()
    machine.load = CpuLoad(lambda: None, lambda: machine.now)
    assert tabs_after(machine, machine.batch(5), busy=1.0) == 5


def test_the_load_is_measured_over_at_least_half_a_second() -> None:
    machine = Machine()
    machine.run(0.4, busy=1.0)
    assert machine.load.busy() is None
    machine.run(0.4, busy=0.5)
    assert machine.load.busy() == pytest.approx(0.75)
    machine.run(0.2, busy=0.0)
    assert machine.load.busy() == pytest.approx(0.75)


def quota(folder: Path, line: str) -> Path:
    (folder / "cpu.max").write_text(line)
    (folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 2000000\n")
    return folder


def test_a_container_cpu_quota_takes_precedence_over_the_machines_cores(tmp_path: Path) -> None:
    limited = quota(tmp_path, "150000 100000\n")
    used, _ = cpu_seconds(limited) or (0, 0)
    assert used == 2.5
    assert usable_cores(limited) <= 2


@pytest.mark.parametrize("line", ["max 100000\n", "garbage\n", ""])
def test_without_a_quota_the_machine_is_measured(tmp_path: Path, line: str) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3\n")
    assert cpu_seconds(quota(tmp_path, line), stat) == (150.0, 1000.0)


def test_the_cpu_time_is_unknown_without_cgroup_and_proc_files(tmp_path: Path) -> None:
    assert cpu_seconds(tmp_path / "none", tmp_path / "none") is None


def test_the_measurement_works_on_this_machine() -> None:
    measure: Callable[[], tuple[float, float] | None] = cpu_seconds
    first, second = measure(), measure()
    assert usable_cores() >= 1
    assert first is None or (second is not None and second >= first)
