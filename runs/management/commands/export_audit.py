"""`manage.py export_audit`: export the audit log with its hash chain as JSON lines."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from decisions.audit.query import export_audit, filter_by_time
from decisions.audit.record import command_actor
from decisions.identity.principals import ensure_workspace
from decisions.models import AuditEntry
from runs.management.arguments import iso_time
from runs.management.export_file import write_bundle
from runs.operations.home.prepare import prepare_home

_EQUAL = ("tenant_id", "workspace_id", "action", "actor", "resource_id")


class Command(BaseCommand):
    """Writes the rows, oldest first, to a file or to stdout."""

    help = "Export the audit log as JSON lines that `verify_audit --bundle` checks."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the filters and the file."""
        for name in _EQUAL:
            parser.add_argument(f"--{name.replace('_', '-')}", help="only rows with this value")
        parser.add_argument("--from", dest="since", type=iso_time, help="ISO 8601, default UTC")
        parser.add_argument("--to", dest="before", type=iso_time, help="ISO 8601; excluded")
        parser.add_argument("--output", help="a new file (default: stdout)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Export the rows."""
        prepare_home()
        equal = {name: options[name] for name in _EQUAL if options[name] is not None}
        times = {name: options[name].isoformat() for name in ("since", "before") if options[name]}
        rows = filter_by_time(
            AuditEntry.objects.filter(**equal), options["since"], options["before"]
        )
        home = ensure_workspace()
        lines = export_audit(
            rows,
            actor=command_actor(),
            owner=(home.tenant_id, home.id),
            filters={**equal, **times},
        )
        write_bundle(self, lines, options["output"])
