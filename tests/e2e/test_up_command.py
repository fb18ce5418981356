"""Test `manage.py up` as a user runs it: its output, a second `up` on the same home, its end."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runs.operations.home.locks import membership
from runs.operations.home.state import is_up
from tests.support.installation.temporary_home import (
    TemporaryHome,
    http_status,
    still_running,
    temporary_home,
)
from tests.support.runs.waiting import eventually


@pytest.fixture
def home(tmp_path: Path) -> Iterator[TemporaryHome]:
    with temporary_home(tmp_path / "home") as created:
        yield created


def _is_clear_error(output: str, *words: str) -> bool:
    return "Traceback" not in output and all(word in output for word in words)


@pytest.mark.slow
def test_up_prints_a_line_for_each_part_serves_and_leaves_nothing_after_ctrl_c(
    home: TemporaryHome,
) -> None:
    home.paths.home.mkdir(mode=0o755)
    up = home.start("up")
    url = up.wait_until_ready()
    for path in (
        home.paths.home,
        home.paths.logs,
        home.paths.redis,
        home.paths.redis / "redis.sock",
    ):
        assert path.stat().st_mode & 0o077 == 0  # accessible to the owner only
    for part in ("redis", "web", "worker", "scheduler"):
        assert [line for line in up.output.splitlines() if line.startswith(f"  {part} ")]
    assert http_status(f"{url}/healthz") == 200
    processes, started = home.processes(), time.monotonic()
    assert up.stop(signal.SIGINT) == 0
    assert time.monotonic() - started < 9
    assert still_running(processes, within_s=0.5) == []
    assert not is_up(home.paths)


@pytest.mark.slow
def test_a_second_up_attaches_and_takes_over_when_the_first_ends(home: TemporaryHome) -> None:
    first, second = home.start("up"), None
    url = first.wait_until_ready()
    second = home.start("up")
    assert url in second.wait_for_line("is up already")
    assert eventually(lambda: "2 (" in home.run("status").stdout)
    first.stop(signal.SIGINT)
    second.wait_for_line("starting it here")
    assert http_status(second.wait_until_ready() + "/healthz") == 200
    assert second.stop(signal.SIGINT) == 0
    assert not is_up(home.paths)


@pytest.mark.slow
def test_down_ends_a_foreground_stack_and_the_commands_attached_to_it(home: TemporaryHome) -> None:
    first = home.start("up")
    first.wait_until_ready()
    second = home.start("up")
    second.wait_for_line("Attached")
    assert "Stopped after" in home.run("down").stdout
    assert first.wait() == 0
    assert second.wait() == 0
    assert home.run("status").returncode == 3


@pytest.mark.slow
def test_a_background_stack_runs_until_down(home: TemporaryHome) -> None:
    assert home.run("status").returncode == 3
    assert "Up in the background" in home.run("up", "--background").stdout
    status = home.run("status")
    assert status.returncode == 0
    for word in ("supervisor", "redis", "web", "worker", "scheduler", "watcher", home.info.url):
        assert word in status.stdout
    words = {line.split()[2] for line in status.stdout.splitlines()[:6]}
    assert words == {"running"}  # the word of `doctor`, /metrics and the dashboard
    assert "0 running, 0 queued" in status.stdout
    assert "Up already" in home.run("up", "--background").stdout
    attached = home.start("up")
    attached.wait_for_line("leaves it running")
    assert attached.stop(signal.SIGINT) == 0
    processes = home.processes()
    assert home.run("down").returncode == 0
    assert still_running(processes, within_s=0.5) == []
    assert "Nothing is up" in home.run("down").stdout


@pytest.mark.slow
def test_an_idle_background_stack_ends(home: TemporaryHome) -> None:
    with membership(home.paths):
        home.run("up", "--background", CONTINUITY_IDLE_STOP_S="1")
        processes = home.processes()
        assert not eventually(lambda: not is_up(home.paths), within_s=8)
    assert still_running(processes, within_s=20) == []
    assert "The stack has been idle" in home.paths.log("up").read_text()


def test_a_home_that_is_not_writable_is_reported_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    up = TemporaryHome(tmp_path / "file" / "home").run("up")
    assert up.returncode == 1
    assert _is_clear_error(up.stderr, "CONTINUITY_HOME")


@pytest.mark.slow
def test_a_home_whose_path_is_too_long_for_sockets_works(tmp_path: Path) -> None:
    with temporary_home(tmp_path / ("deep" * 30)) as deep:
        up = deep.start("up")
        up.wait_until_ready()
        socket_path = Path(deep.info.services[0].where)
        assert socket_path.is_socket()
        assert socket_path.parent.stat().st_mode & 0o077 == 0
        assert deep.run("doctor").returncode == 0
        assert up.stop() == 0
        assert not socket_path.parent.exists()


@pytest.mark.slow
def test_several_commands_prepare_a_new_home_concurrently(home: TemporaryHome) -> None:
    with ThreadPoolExecutor(3) as pool:
        checks = list(pool.map(lambda _: home.run("doctor"), range(3)))
    assert [completed.returncode for completed in checks] == [0, 0, 0], [
        completed.stdout for completed in checks
    ]
