"""The browser of a process: started on demand and after a crash, without leftovers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from runners.browser.pool.chromium import ChromiumMissing, find_chromium
from runners.browser.pool.runtime import BrowserRuntime, get_runtime
from runners.browser.pool.temp_home import sweep_homes
from runners.errors import PageCrashed
from runners.invocation.event_loop import LoopThread
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.runs.waiting import eventually

OWNER = """
import asyncio, sys
from runners.browser.pool.runtime import get_runtime
from runners.invocation.event_loop import get_loop

async def hold():
    session = await get_runtime().open_session(run_id="run_owner", trust="local")
    async with session.tab() as tab:
        await tab.page.goto(sys.argv[1])
        print("up", flush=True)
        await asyncio.sleep(600)

get_loop().submit(hold()).result()
"""


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a temporary directory of this test alone, so that the test finds all leftovers."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def runtime(browser_loop: LoopThread, base: Path) -> Iterator[BrowserRuntime]:
    """Return a browser of this test alone, which the test may kill."""
    runtime = BrowserRuntime()
    yield runtime
    browser_loop.submit(runtime.close()).result(30)


@pytest.fixture
def reader(browser_loop: LoopThread, runtime: BrowserRuntime) -> Reader:
    session = browser_loop.submit(runtime.open_session(run_id="run_x", trust="local")).result(30)
    return Reader(browser_loop, session)


def processes(base: Path) -> dict[str, psutil.Process]:
    """Return the driver and the browser that run below `base`, by name."""
    found = {}
    for process in psutil.process_iter():
        try:
            command, env = process.cmdline(), process.environ()
        except psutil.Error:
            continue
        if env.get("TMPDIR", "").startswith(str(base)) and "run-driver" in command:
            found["driver"] = process
        profile = any(arg.startswith(f"--user-data-dir={base}") for arg in command)
        if profile and not any(arg.startswith("--type=") for arg in command):
            found["browser"] = process
    return found


def processes_using(base: Path) -> list[int]:
    """Return every process that uses `base`: browsers' children have no profile argument."""
    return [
        process.pid
        for process in psutil.process_iter()
        if process.pid != os.getpid() and str(base).encode() in _command_and_environment(process)
    ]


def _command_and_environment(process: psutil.Process) -> bytes:
    try:
        folder = Path("/proc") / str(process.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return b""
        return (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
    except (OSError, psutil.Error):
        return b""


def test_no_browser_is_started_before_it_is_needed(
    browser_loop: LoopThread, runtime: BrowserRuntime, reader: Reader, base: Path
) -> None:
    assert runtime.launches == 0
    browser_loop.submit(reader.session.close()).result(30)
    assert (runtime.launches, list(base.iterdir())) == (0, [])


def test_driver_and_browser_do_not_inherit_the_secrets_of_their_process(
    browser_loop: LoopThread,
    runtime: BrowserRuntime,
    base: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CONTINUITY_LLM_API_KEY", "canary-of-the-model")
    browser_loop.submit(runtime.browser()).result(60)
    family = psutil.Process().children(recursive=True)
    texts = [_command_and_environment(process) for process in family]
    own = [text for text in texts if b"run-driver" in text or str(base).encode() in text]
    assert len(own) >= 2  # the driver and the browser
    assert not [text for text in own if b"canary" in text]


@pytest.mark.slow
def test_many_sessions_at_once_share_one_browser(
    runtime: BrowserRuntime, reader: Reader, page_server: PageServer
) -> None:
    async def open_and_close() -> None:
        session = await runtime.open_session(run_id="run_y", trust="local")
        async with session.tab() as tab:
            await tab.page.goto(page_server.url("/plain"))
        await session.close()

    async def all_at_once() -> None:
        await asyncio.gather(*(open_and_close() for _ in range(6)))

    reader.wait(all_at_once())
    assert runtime.launches == 1


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["browser", "driver"])
def test_a_killed_browser_or_driver_is_a_crashed_page_and_the_retry_has_a_new_one(
    runtime: BrowserRuntime, reader: Reader, page_server: PageServer, base: Path, victim: str
) -> None:
    async def kill_while_reading() -> None:
        reading = asyncio.create_task(reader.reading(page_server.url("/long-poll")))
        while not page_server.hits["/api/never"]:
            await asyncio.sleep(0.02)
        processes(base)[victim].kill()
        await reading

    with pytest.raises(PageCrashed):
        reader.wait(kill_while_reading())
    assert reader(page_server.url("/plain"))["title"] == "Plain"
    assert (runtime.launches, reader.session.renewals) == (2, 1)
    assert len([path for path in base.iterdir() if path.is_dir()]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["browser", "driver"])
def test_a_browser_that_crashed_while_idle_is_replaced_for_the_next_session(
    browser_loop: LoopThread,
    runtime: BrowserRuntime,
    reader: Reader,
    page_server: PageServer,
    base: Path,
    *,
    victim: str,
) -> None:
    reader(page_server.url("/plain"))
    processes(base)[victim].kill()
    time.sleep(0.3)
    fresh = browser_loop.submit(runtime.open_session(run_id="run_z", trust="local")).result(30)
    assert Reader(browser_loop, fresh)(page_server.url("/other"))["title"] == "Other"
    assert runtime.launches == 2


@pytest.mark.slow
def test_a_driver_that_hangs_is_ended_and_replaced(
    monkeypatch: pytest.MonkeyPatch,
    runtime: BrowserRuntime,
    reader: Reader,
    page_server: PageServer,
    base: Path,
) -> None:
    monkeypatch.setattr("runners.browser.pool.runtime.PING_SECONDS", 1.0)
    monkeypatch.setattr("runners.browser.pool.runtime.CLOSE_SECONDS", 1.0)
    reader(page_server.url("/plain"))
    stopped = processes(base)["driver"]
    stopped.suspend()
    fresh = reader.wait(runtime.open_session(run_id="run_z", trust="local"))
    assert Reader(reader.loop, fresh)(page_server.url("/other"))["title"] == "Other"
    assert not stopped.is_running() or stopped.status() == psutil.STATUS_ZOMBIE


@pytest.mark.slow
def test_close_leaves_no_process_and_no_file(
    runtime: BrowserRuntime, reader: Reader, page_server: PageServer, base: Path
) -> None:
    reader(page_server.url("/plain"))
    assert set(processes(base)) == {"driver", "browser"}
    reader.wait(runtime.close())
    assert eventually(lambda: processes_using(base) == [])
    assert list(base.iterdir()) == []
    assert reader(page_server.url("/plain"))["title"] == "Plain"


@pytest.mark.slow
@pytest.mark.parametrize("signal_sent", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_owner_leaves_no_process_and_its_files_are_swept(
    page_server: PageServer, base: Path, signal_sent: signal.Signals
) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, page_server.url("/plain")],
        text=True,
        env={**os.environ, "TMPDIR": str(base)},
        stdout=subprocess.PIPE,
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == "up\n"
    assert len(processes_using(base)) >= 3
    owner.send_signal(signal_sent)
    owner.wait(10)
    owner.stdout.close()
    assert eventually(lambda: processes_using(base) == [])
    sweep_homes()
    assert list(base.iterdir()) == []


def test_a_missing_browser_is_reported_with_the_remedy(
    browser_loop: LoopThread, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTINUITY_CHROMIUM", "/nowhere/chromium")
    runtime = BrowserRuntime()
    session = browser_loop.submit(runtime.open_session(run_id="r", trust="local")).result(30)
    failure = Reader(browser_loop, session).failure(page_server.url("/plain"))
    assert isinstance(failure, ChromiumMissing)
    assert "/nowhere" not in str(failure.as_dict())


def test_a_browser_that_does_not_start_is_a_failure_without_leftovers(
    browser_loop: LoopThread,
    page_server: PageServer,
    base: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CONTINUITY_CHROMIUM", "/bin/false")
    runtime = BrowserRuntime()
    session = browser_loop.submit(runtime.open_session(run_id="r", trust="local")).result(30)
    assert isinstance(Reader(browser_loop, session).failure(page_server.url("/plain")), PageCrashed)
    assert eventually(lambda: processes_using(base) == [])
    assert list(base.iterdir()) == []


def test_a_process_has_one_runtime() -> None:
    assert get_runtime() is get_runtime()
    assert find_chromium().path.exists()
