"""A background stack ends when no process uses it, and never while one does."""

from __future__ import annotations

import os
import time
from pathlib import Path

from runs.operations.home.locks import membership, try_lock
from runs.operations.home.paths import HomePaths
from runs.operations.supervision.idle import IdleRule, WebActivity


def _never() -> None:
    raise AssertionError("it must not end")


def test_an_unused_stack_without_work_ends(tmp_path: Path) -> None:
    reports: list[str] = []
    rule = IdleRule(HomePaths(tmp_path), idle_s=0, has_active_runs=lambda: False)
    assert rule.should_stop(lambda: reports.append("ending"))
    assert reports == ["ending"]


def test_a_stack_with_a_member_stays(tmp_path: Path) -> None:
    rule = IdleRule(HomePaths(tmp_path), idle_s=0, has_active_runs=lambda: False)
    with membership(HomePaths(tmp_path)):
        assert not rule.should_stop(_never)


def test_a_stack_with_a_run_stays(tmp_path: Path) -> None:
    rule = IdleRule(HomePaths(tmp_path), idle_s=0.001, has_active_runs=lambda: True)
    assert not rule.should_stop(_never)


def test_a_stack_stays_for_the_given_time(tmp_path: Path) -> None:
    rule = IdleRule(HomePaths(tmp_path), idle_s=60, has_active_runs=lambda: False)
    assert not rule.should_stop(_never)


def test_a_stack_with_web_callers_stays(tmp_path: Path) -> None:
    paths = HomePaths(tmp_path)
    rule = IdleRule(paths, idle_s=30, has_active_runs=lambda: False)
    rule._used_at -= 60  # there was no member for a minute
    WebActivity(paths).record()
    assert not rule.should_stop(_never)
    an_hour_ago = time.time() - 3600
    os.utime(paths.members_lock, (an_hour_ago, an_hour_ago))
    assert rule.should_stop(lambda: None)


def test_no_process_becomes_a_member_between_the_decision_and_its_notice(tmp_path: Path) -> None:
    paths = HomePaths(tmp_path)
    free_meanwhile: list[int | None] = []
    rule = IdleRule(paths, idle_s=0, has_active_runs=lambda: False)
    assert rule.should_stop(lambda: free_meanwhile.append(try_lock(paths.members_lock)))
    assert free_meanwhile == [None]
