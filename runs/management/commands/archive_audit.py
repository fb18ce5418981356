"""`manage.py archive_audit --before DATE FILE`: move old audit rows to a file."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from decisions.audit.archive import ArchiveError, archive
from decisions.audit.record import command_actor
from runs.management.arguments import iso_time
from runs.operations.home.prepare import prepare_home


class Command(BaseCommand):
    """Exports sealed rows to a file that can be verified alone, then removes them."""

    help = "Move sealed audit rows to a file that `verify_audit --bundle` checks."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the time and the file."""
        parser.add_argument(
            "--before",
            type=iso_time,
            required=True,
            metavar="DATE",
            help="archive the rows that are older (ISO 8601, default UTC)",
        )
        parser.add_argument("file", help="a new file, readable by its owner alone")

    def handle(self, *args: Any, **options: Any) -> None:
        """Archive the rows."""
        if options["before"] > datetime.now(UTC):
            raise CommandError("--before: the date is in the future.")
        prepare_home()
        path = Path(options["file"])
        try:
            archived = archive(
                path,
                before=options["before"],
                actor=command_actor(),
                processes=os.cpu_count() or 1,
            )
        except ArchiveError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            f"Archived {archived.rows} rows, seals {archived.first} to {archived.last.position}, to"
            f" {path}.\nSHA-256 {archived.sha256}\nThey were removed from the database. `manage.py"
            f" verify_audit --bundle {path}` verifies the file."
        )
