"""Restore a backup: `manage.py restore DIR`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.installation.backups.restore import restore_backup
from runs.installation.home.errors import StackError


class Command(BaseCommand):
    """Check a backup, then put it into this home and this database."""

    help = "Restore what `manage.py backup` made, into an empty home or database."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare where from, and what may be lost for it."""
        parser.add_argument("folder", metavar="DIR", help="a folder that `manage.py backup` made")
        parser.add_argument(
            "--force",
            action="store_true",
            help="replace what is here; the files of an embedded home are moved aside",
        )
        parser.add_argument(
            "--without-keys",
            action="store_true",
            help="go on without the keys of the backup: its tokens, secrets and audit proofs are"
            " lost",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Restore it, and say what comes next."""
        folder = Path(options["folder"]).absolute()
        try:
            restore_backup(
                folder,
                force=options["force"],
                without_keys=options["without_keys"],
                report=self.stdout.write,
            )
        except StackError as problem:
            raise CommandError(str(problem)) from None
        self.stdout.write(
            "Restored. `manage.py verify_audit` checks its audit log; runs that were queued or"
            " under way go on when workers start."
        )
