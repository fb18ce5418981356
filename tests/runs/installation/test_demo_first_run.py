"""The first run as a user sees it: the command, a real stack and browser, the shipped pages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from runs.installation.demo.site import READING_ORDER
from tests.support.installation.temporary_home import TemporaryHome


@dataclass(frozen=True)
class FirstRun:
    """The result of `manage.py up --demo --once`."""

    exit_status: int
    output: str
    errors: str
    home: Path


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> FirstRun:
    home = tmp_path_factory.mktemp("home")
    done = TemporaryHome(home).run("up", "--demo", "--once")
    return FirstRun(done.returncode, done.stdout, done.stderr, home)


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


def test_it_prints_the_artifact_the_login_link_and_the_next_command(first_run: FirstRun) -> None:
    assert "/api/v1/artifacts/art_" in first_run.output
    assert "/admin/once/" in first_run.output
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
