"""`manage.py restore DIR`: restore a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.operations.backups.restore import restore_backup
from runs.operations.home.errors import StackError


class Command(BaseCommand):
    """Checks a backup, then restores it into this home and this database."""

    help = "Restore a backup of `manage.py backup` into an empty home or database."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the folder, and what may be replaced or lost."""
        parser.add_argument("folder", metavar="DIR", help="a folder of `manage.py backup`")
        parser.add_argument(
            "--force",
            action="store_true",
            help="replace existing content; the files of an embedded home are moved aside",
        )
        parser.add_argument(
            "--without-keys",
            action="store_true",
            help="restore without the secret keys of the backup: its tokens, secrets and audit"
            " proofs are lost",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Restore the backup, and print what to do next."""
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
            " running continue when workers start."
        )
