"""`manage.py docker_runner` as Django's list of commands has it; manage.py itself takes the short
way to the same function, without Django.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from runners.docker_runner import command_line


class Command(BaseCommand):
    """Serve the reference docker-runner."""

    help = command_line.HELP
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        command_line.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve until SIGTERM or Ctrl-C."""
        sys.exit(command_line.run(options))
