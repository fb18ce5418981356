"""`manage.py recount_runs`: repair the stored totals of runs."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from runs.operations.home.prepare import prepare_home
from runs.queries.totals import repair_totals


class Command(BaseCommand):
    """Recounts the runs of every workspace; runs may continue meanwhile."""

    help = "Recount the runs of each workspace, if doctor reports wrong totals."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Recount, and print how many totals were wrong."""
        prepare_home()
        self.stdout.write(f"{repair_totals()} totals were wrong and have been corrected.")
