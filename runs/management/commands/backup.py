"""`manage.py backup DIR`: create a backup of this installation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.operations.backups.create import create_backup, has_artifact_files
from runs.operations.home.errors import StackError
from runs.operations.home.prepare import prepare_home


class Command(BaseCommand):
    """Writes the database, artifacts, snapshots and audit checkpoints, while everything runs."""

    help = "Back up this installation, while it runs, into an empty or new folder."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the folder, and what to include."""
        parser.add_argument("folder", metavar="DIR", help="an empty or new folder")
        parser.add_argument(
            "--with-keys",
            action="store_true",
            help="include the secret keys: then the folder can be read in full without them",
        )
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            "--with-artifacts",
            action="store_true",
            default=None,
            dest="artifacts",
            help="copy artifacts from a bucket too (files are always copied)",
        )
        which.add_argument(
            "--without-artifacts",
            action="store_false",
            default=None,
            dest="artifacts",
            help="do not copy artifacts",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Create the backup, and print what is in it and what is not."""
        folder, with_keys = Path(options["folder"]).absolute(), options["with_keys"]
        with_artifacts = options["artifacts"]
        try:
            prepare_home()
            manifest = create_backup(
                folder,
                with_keys=with_keys,
                report=self.stdout.write,
                with_artifacts=has_artifact_files() if with_artifacts is None else with_artifacts,
            )
        except StackError as problem:
            raise CommandError(str(problem)) from None
        if manifest.blobs is None:
            self.stdout.write("artifacts   left out: back up their storage separately")
        else:
            self.stdout.write(f"artifacts   {manifest.blobs}, {manifest.blob_bytes} bytes")
        if manifest.missing:
            self.stdout.write(f"            {manifest.missing} had already lost their content")
        self.stdout.write(
            "keys        in it: protect the folder as you protect them"
            if with_keys
            else "keys        not in it: store CONTINUITY_SECRET_KEYS, or the home's file `keys`,"
            " elsewhere; without them no token, secret or audit row of it can be used again"
        )
        self.stdout.write(f"The backup in {folder} is complete.")
