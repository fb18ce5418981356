"""Count anew how many runs there are: `manage.py recount_runs`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from runs.installation.home.prepare import prepare_home
from runs.queries.totals import repair_totals


class Command(BaseCommand):
    """Correct the totals of the lists of runs; runs may go on meanwhile."""

    help = "Count anew how many runs each workspace has, where doctor found the totals wrong."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Count, and say what was wrong."""
        prepare_home()
        self.stdout.write(f"{repair_totals()} totals were wrong and are right now.")
