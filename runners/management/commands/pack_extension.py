"""Generate the page scripts of the browser extension, and pack it."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runners.browser.page_scripts import extension_scripts
from runners.paired_browser.package import FOLDER, pack_extension

GENERATED = FOLDER / "generated"


class Command(BaseCommand):
    """Write the extension's zip file."""

    help = "Generate the page scripts of the browser extension, and pack it into a zip file."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--out", type=Path, required=True, help="the zip file to write")
        parser.add_argument(
            "--origin",
            action="append",
            default=[],
            help="a server whose admin pages may offer a pairing, such as"
            " https://continuity.example; can be given several times",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the scripts, then the zip file."""
        for name, script in extension_scripts().items():
            (GENERATED / name).write_text(script, encoding="utf-8")
        try:
            packed = pack_extension(options["origin"])
        except ValueError as error:
            raise CommandError(f"--origin: {error}") from None
        options["out"].write_bytes(packed)
        self.stdout.write(f"{options['out']}: {len(packed)} bytes")
