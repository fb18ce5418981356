"""Make a backup of this installation: `manage.py backup DIR`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.installation.backups.create import create_backup, has_artifact_files
from runs.installation.home.errors import StackError
from runs.installation.home.prepare import prepare_home


class Command(BaseCommand):
    """Write database, artifacts, snapshots and audit checkpoints into an empty folder, while
    everything goes on.
    """

    help = "Back up this installation into an empty folder, while it runs."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare where to, and what of it."""
        parser.add_argument("folder", metavar="DIR", help="an empty folder, or a new one")
        parser.add_argument(
            "--with-keys",
            action="store_true",
            help="put the secret keys in as well: whoever has the folder then can read it all",
        )
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            "--with-artifacts",
            action="store_true",
            default=None,
            dest="artifacts",
            help="copy artifacts out of a bucket too (files are copied anyway)",
        )
        which.add_argument(
            "--without-artifacts",
            action="store_false",
            default=None,
            dest="artifacts",
            help="leave artifacts out",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Make it, and say what is in it and what is not."""
        folder, with_keys = Path(options["folder"]).absolute(), options["with_keys"]
        asked = options["artifacts"]
        try:
            prepare_home()
            manifest = create_backup(
                folder,
                with_keys=with_keys,
                report=self.stdout.write,
                with_artifacts=has_artifact_files() if asked is None else asked,
            )
        except StackError as problem:
            raise CommandError(str(problem)) from None
        if manifest.blobs is None:
            self.stdout.write("artifacts   left out: see that their storage has its own backups")
        else:
            self.stdout.write(f"artifacts   {manifest.blobs}, {manifest.blob_bytes} bytes")
        if manifest.missing:
            self.stdout.write(f"            {manifest.missing} had lost their bytes before")
        self.stdout.write(
            "keys        in it: keep the folder as you keep them"
            if with_keys
            else "keys        not in it: keep CONTINUITY_SECRET_KEYS, or the home's file `keys`,"
            " elsewhere; without them no token, secret or audit row of it can be used again"
        )
        self.stdout.write(f"The backup is whole in {folder}.")
