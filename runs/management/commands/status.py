"""`manage.py status`: show whether the stack of this home is up."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand
from django.db import Error

from decisions.foundation.infra.redis import describe_redis_fault
from runs.operations.health.processes import ProcessState, list_processes
from runs.operations.health.web_probe import describe_web_fault
from runs.operations.home.locks import member_pids
from runs.operations.home.paths import HomePaths, home_paths
from runs.operations.home.state import ServiceInfo, StackInfo, birth, is_up, stack_info
from runs.operations.supervision.active_runs import count_active_runs

DOWN = 3  # the LSB exit code of a service that is not running


class Command(BaseCommand):
    """Shows the services, their processes, the active runs and the members."""

    help = "Show services, processes, address, runs and members. Exit 0 if up, 3 if down."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the table."""
        paths = home_paths()
        info = stack_info(paths)
        if not is_up(paths) or info is None or info.state == "stopped":
            self.stdout.write(f"Nothing is up for {paths.home}. `manage.py up` starts it.")
            sys.exit(DOWN)
        if birth(info.pid) != info.birth:
            self.stdout.write("The supervisor was killed; its watcher is stopping the services.")
            sys.exit(DOWN)
        lines = [*_stack_lines(info), *_redis_lines(), *_run_lines(), _member_line(paths)]
        for line in lines:
            self.stdout.write(line)


def _stack_lines(info: StackInfo) -> list[str]:
    rows = [("supervisor", info.pid, info.state, f"{info.url} ({info.mode})")]
    for service in info.services:
        restarts = f", restarted {service.restarts}×" if service.restarts else ""
        state = _state_of(service, info.url)
        rows.append((service.name, service.pid or 0, state + restarts, service.where))
    width = max(len(row[2]) for row in rows)
    return [
        f"{name:<11} {pid or '-':>8}  {state:<{width}}  {where}" for name, pid, state, where in rows
    ]


def _state_of(service: ServiceInfo, url: str) -> str:
    """Return a service's state as the supervisor has it, or what shows that it hangs."""
    if service.name == "web":
        return describe_web_fault(url) or service.state
    try:
        known = [one for one in list_processes() if one.kind == service.name]
    except Error:
        return service.state
    hung = [one for one in known if one.pid == service.pid and one.state == ProcessState.HUNG]
    return hung[0].words if hung else service.state


def _redis_lines() -> list[str]:
    fault = describe_redis_fault()
    return [f"{'redis':<11} {fault} Runs are found by polling."] if fault else []


def _run_lines() -> list[str]:
    try:
        counts = count_active_runs()
    except Error as error:
        return [f"{'runs':<11} the database does not answer ({type(error).__name__})"]
    return [f"{'runs':<11} {counts['running']} running, {counts['queued']} queued"]


def _member_line(paths: HomePaths) -> str:
    pids = member_pids(paths.members_lock)
    if pids is None:
        return f"{'members':<11} unknown on this system"
    listed = f" ({', '.join(map(str, pids))})" if pids else ""
    return f"{'members':<11} {len(pids)}{listed}"
