"""`manage.py export_evidence RUN_ID`: export the evidence of one run as JSON lines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from decisions.audit.record import command_actor
from decisions.foundation.errors import Refused
from decisions.identity.principals import admin_principal
from runs.management.export_file import write_bundle
from runs.models import Run
from runs.operations.home.prepare import prepare_home
from runs.queries.evidence import export_evidence


class Command(BaseCommand):
    """Writes a run's inputs, steps, artifacts and decisions, with its rows of the audit log."""

    help = "Export the evidence of one run as JSON lines that `verify_audit --bundle` checks."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the run and the file."""
        parser.add_argument("run_id", metavar="RUN_ID")
        parser.add_argument(
            "--contents", action="store_true", help="include the content of its artifacts"
        )
        parser.add_argument("--output", help="a new file (default: stdout)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Export the evidence."""
        prepare_home()
        run_id = options["run_id"]
        run = Run.objects.filter(id=run_id).only("tenant_id", "workspace_id").first()
        if run is None:
            raise CommandError(f"There is no run {run_id}.")
        principal = admin_principal("", tenant_id=run.tenant_id, workspace_id=run.workspace_id)
        principal = replace(principal, id=command_actor())
        try:
            lines = export_evidence(
                principal=principal, run_id=run_id, contents=options["contents"]
            )
        except Refused as refused:
            raise CommandError(refused.message) from None
        write_bundle(self, lines, options["output"])
