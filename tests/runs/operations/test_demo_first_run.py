"""The first run as a user sees it: the command, a real stack and browser, the shipped pages."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from runners.child_environment import INHERITED, PROXIES
from runs.operations.demo.site import READING_ORDER
from runs.operations.home.state import stack_info
from tests.support.installation.temporary_home import TemporaryHome
from tests.support.runs.waiting import eventually

SECRETS = {
    "CONTINUITY_LLM_API_KEY": "canary-of-the-model",
    "CONTINUITY_SECRET_KEYS": "canary-of-the-secret-keys-0123456789",
    "CONTINUITY_RUNNER_TOKEN": "canary-of-the-runner",
    "AWS_SECRET_ACCESS_KEY": "canary-of-the-store",
    "SECRET_OF_A_TEMPLATE": "canary-of-a-template",
}
# Words in the command lines of the stack's processes, the first that is found counts.
PARTS = {
    "watcher.py": "watcher",
    "liveness": "guard",
    "manage.py worker": "worker",
    "manage.py serve": "web",
    "manage.py scheduler": "scheduler",
    "manage.py up": "supervisor",
    "read -r _": "guard",
    "run-driver": "driver",
    "--user-data-dir": "browser",
    "--type=": "browser",
    "redis-server": "redis",
    "valkey-server": "redis",
}
OWN_PROGRAMS = {"supervisor", "web", "worker", "scheduler"}
# The last four are set by the driver's start, by Chromium and by shells.
LISTED = {*INHERITED, *PROXIES, "FONTCONFIG_FILE"} | {
    "PW_LANG_NAME",
    "DBUS_SESSION_BUS_ADDRESS",
    "FC_FONTATIONS",
    "PWD",
}
Environment = Mapping[str, str]


@dataclass(frozen=True)
class FirstRun:
    """The result of `manage.py up --demo --once`."""

    exit_status: int
    output: str
    errors: str
    home: Path
    environments: list[tuple[str, Environment]]


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> FirstRun:
    folder = tmp_path_factory.mktemp("home")
    home = TemporaryHome(folder, **SECRETS)
    environments: list[tuple[str, Environment]] = []

    def has_pages() -> bool:
        environments[:] = environments_of(home)
        return sum(part == "browser" for part, _ in environments) > 2

    with ThreadPoolExecutor() as pool:
        running = pool.submit(home.run, "up", "--demo", "--once")
        eventually(lambda: running.done() or has_pages(), 115)
        done = running.result()
    return FirstRun(done.returncode, done.stdout, done.stderr, folder, environments)


def environments_of(home: TemporaryHome) -> list[tuple[str, Environment]]:
    """Return the part and the environment of each process of the stack, from /proc/*/environ."""
    found: list[tuple[str, Environment]] = []
    if stack_info(home.paths) is None:
        return found
    for process in home.processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            command, environ = " ".join(process.cmdline()), process.environ()
            part = next((PARTS[word] for word in PARTS if word in command), command)
            # Chromium writes its title over its arguments and what follows them in memory.
            found.append((part, {name: environ[name] for name in environ if name.isidentifier()}))
    return found


@pytest.mark.slow
def test_it_succeeds_with_every_page_read(first_run: FirstRun) -> None:
    assert (first_run.exit_status, first_run.errors) == (0, "")
    assert f"{len(READING_ORDER)} of {len(READING_ORDER)} pages read" in first_run.output
    assert "succeeded" in first_run.output
    assert "Failed" not in first_run.output


def test_each_page_has_a_progress_line_and_a_table_row(first_run: FirstRun) -> None:
    words = [line.split() for line in first_run.output.splitlines()]
    assert {line[1] for line in words if line and "/16" in line[0]} == set(READING_ORDER)
    assert [line[0] for line in words if line and line[0] in READING_ORDER] == list(READING_ORDER)


def test_the_missing_page_and_the_redirected_one_have_a_note(first_run: FirstRun) -> None:
    assert "Note: /start redirected to /quick-start.html" in first_run.output
    assert "Note: /no-such-page.html: The server answered with HTTP status 404" in first_run.output


def test_it_prints_the_next_command_and_no_address_of_the_stopped_stack(
    first_run: FirstRun,
) -> None:
    assert "stops now; " in first_run.output
    assert "/api/v1/artifacts/art_" not in first_run.output
    assert "/admin/once/" not in first_run.output
    assert "manage.py mcp_config" in first_run.output


def test_no_file_of_the_home_contains_a_secret_of_the_form(first_run: FirstRun) -> None:
    files = [path for path in first_run.home.rglob("*") if path.is_file()]
    everything = b"".join(path.read_bytes() for path in files)
    assert b"batch_extract_pages" in everything
    assert b"correct-horse-battery-staple" not in everything
    assert b"an-example-and-no-real-token" not in everything


def test_frames_shadow_roots_and_late_scripts_were_read(first_run: FirstRun) -> None:
    artifacts = b"".join(path.read_bytes() for path in first_run.home.rglob("*") if path.is_file())
    assert b"submits it again, without repeating the steps that succeeded" in artifacts
    assert b"wait for the events after a number" in artifacts
    assert b"run.canceled | The end: the run was canceled." in artifacts
    assert "消息队列丢了也没有关系".encode() in artifacts


def test_only_continuitys_own_programs_have_secrets_in_their_environment(
    first_run: FirstRun,
) -> None:
    assert {part for part, _ in first_run.environments} == set(PARTS.values())
    for part, environ in first_run.environments:
        secrets = {name for name, value in environ.items() if "canary" in value}
        expected = SECRETS.keys() if part in OWN_PROGRAMS else set()
        if part in ("web", "scheduler"):  # only workers call the model
            expected = expected - {"CONTINUITY_LLM_API_KEY"}
        assert secrets == expected, part
        if part not in OWN_PROGRAMS:
            assert {name for name in environ if not name.startswith("LC_")} <= LISTED, part
