"""`manage.py status`: what of this home is up."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand
from django.db import Error

from runs.installation.home.locks import member_pids
from runs.installation.home.paths import HomePaths, home_paths
from runs.installation.home.state import StackInfo, birth, is_up, stack_info
from runs.installation.supervision.active_runs import count_active_runs

DOWN = 3  # as service managers say it


class Command(BaseCommand):
    """Show the parts, their processes, the work and the members."""

    help = "Show what is up: parts, processes, address, runs, members. Exit 0 when up, 3 when down."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the table."""
        paths = home_paths()
        info = stack_info(paths)
        if not is_up(paths) or info is None or info.state == "stopped":
            self.stdout.write(f"Nothing is up for {paths.home}. `manage.py up` starts it.")
            sys.exit(DOWN)
        if birth(info.pid) != info.birth:
            self.stdout.write("The supervisor was killed; its watcher is stopping the parts.")
            sys.exit(DOWN)
        for line in [*_stack_lines(info), *_work_lines(), _member_line(paths)]:
            self.stdout.write(line)


def _stack_lines(info: StackInfo) -> list[str]:
    rows = [("supervisor", info.pid, info.state, f"{info.url} ({info.mode})")]
    for part in info.services:
        again = f", restarted {part.restarts}×" if part.restarts else ""
        rows.append((part.name, part.pid or 0, part.state + again, part.where))
    width = max(len(row[2]) for row in rows)
    return [
        f"{name:<11} {pid or '-':>8}  {state:<{width}}  {where}" for name, pid, state, where in rows
    ]


def _work_lines() -> list[str]:
    try:
        counts = count_active_runs()
    except Error as error:
        return [f"{'runs':<11} the database does not answer ({type(error).__name__})"]
    return [f"{'runs':<11} {counts['running']} running, {counts['queued']} queued"]


def _member_line(paths: HomePaths) -> str:
    pids = member_pids(paths.members_lock)
    if pids is None:
        return f"{'members':<11} unknown on this system"
    named = f" ({', '.join(map(str, pids))})" if pids else ""
    return f"{'members':<11} {len(pids)}{named}"
