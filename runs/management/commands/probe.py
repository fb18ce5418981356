"""`manage.py probe worker|scheduler`: the liveness probe of a container."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from decisions.foundation.infra.processes import seconds_since_alive

ALIVE_WITHIN_S = 120.0  # a database that does not answer may hold a process up for some time


class Command(BaseCommand):
    """Exits with 0 if a worker or scheduler on this host works, else with 1; asks no server."""

    help = "Exit with 1 if no worker or scheduler of this host (and home) has worked for 120 s."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the kind of process."""
        parser.add_argument("role", choices=("worker", "scheduler"))

    def handle(self, *args: Any, **options: Any) -> None:
        """Print how long ago the process worked."""
        role, age_s = options["role"], seconds_since_alive(options["role"])
        if age_s is None or not 0 <= age_s < ALIVE_WITHIN_S:
            when = "ever" if age_s is None else f"for {age_s:.0f} s"
            self.stderr.write(f"No {role} of this host has worked {when}.")
            sys.exit(1)
        self.stdout.write(f"A {role} worked {age_s:.0f} s ago.")
