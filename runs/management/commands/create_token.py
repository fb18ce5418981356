"""Make a bearer token: `manage.py create_token NAME [--workspace W] [--user U] [--scopes …]
[--trust local]`.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from decisions.audit.record import command_actor
from decisions.errors import Refused
from decisions.identity.principals import LOCAL, create_token
from runs.installation.home.prepare import prepare_home


class Command(BaseCommand):
    """Print a new token once, on a line of its own on stdout; what it may do goes to stderr."""

    help = "Make a bearer token for the REST API and MCP over HTTP. It is shown once."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the token's name, place, scopes and trust level."""
        parser.add_argument(
            "name", help="what the token is for; shown in the admin and the audit log"
        )
        parser.add_argument(
            "--workspace", default=LOCAL, help="made when new (default: %(default)s)"
        )
        parser.add_argument("--tenant", default=LOCAL, help="made when new (default: %(default)s)")
        parser.add_argument(
            "--user",
            action="append",
            default=[],
            dest="users",
            help="a user_id it may act for, made when new; several times for several users"
            " (default: any user of the workspace)",
        )
        parser.add_argument(
            "--scopes",
            help="comma-separated; default: all but targets:admin, confirm and metrics:read, and"
            " with --user without those of the audit log",
        )
        parser.add_argument("--trust", choices=["local", "remote"], default="remote")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make and print the token."""
        prepare_home()
        scopes = options["scopes"]
        wanted = (
            frozenset(filter(None, scopes.replace(" ", "").split(",")))
            if scopes is not None
            else None
        )
        if wanted is not None and not wanted:
            raise CommandError("--scopes names none; leave it out for the usual ones.")
        try:
            token = create_token(
                name=options["name"],
                workspace=options["workspace"],
                tenant=options["tenant"],
                users=options["users"],
                scopes=wanted,
                trust=options["trust"],
                actor=command_actor(),
            )
        except Refused as refused:
            raise CommandError(refused.message) from None
        self.stderr.write(
            f"Token '{options['name']}' for workspace '{options['workspace']}',"
            f" trust {options['trust']}. It is shown this once:"
        )
        self.stdout.write(token)
