"""`manage.py create_token NAME`: create a bearer token."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from decisions.audit.record import command_actor
from decisions.foundation.errors import Refused
from decisions.identity.authority import CONFIRM, WRITES
from decisions.identity.principals import LOCAL, create_token
from decisions.identity.tokens import parse_lifetime
from runs.operations.home.prepare import prepare_home


class Command(BaseCommand):
    """Prints the new token on stdout, and its workspace and trust level on stderr."""

    help = "Create a bearer token for the REST API and MCP over HTTP. It is printed once."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the token's name, workspace, users, scopes, trust level and lifetime."""
        parser.add_argument(
            "name", help="what the token is for; shown in the admin and the audit log"
        )
        parser.add_argument(
            "--workspace", default=LOCAL, help="created if new (default: %(default)s)"
        )
        parser.add_argument("--tenant", default=LOCAL, help="created if new (default: %(default)s)")
        parser.add_argument(
            "--user",
            action="append",
            default=[],
            dest="users",
            help="a user_id that it may act for, created if missing; repeat it for several users"
            " (default: any user of the workspace)",
        )
        parser.add_argument(
            "--scopes",
            help="comma-separated (default: all but targets:admin, confirm and metrics:read; with"
            " --user also without those of the audit log)",
        )
        parser.add_argument("--trust", choices=["local", "remote"], default="remote")
        parser.add_argument(
            "--expires",
            metavar="LIFETIME",
            help="refuse the token after this time: 90d, 12h or 30m (default: it never expires)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Create and print the token."""
        prepare_home()
        scopes = options["scopes"]
        chosen = (
            frozenset(filter(None, scopes.replace(" ", "").split(",")))
            if scopes is not None
            else None
        )
        if chosen is not None and not chosen:
            raise CommandError("--scopes names none; leave it out for the default scopes.")
        try:
            token = create_token(
                name=options["name"],
                workspace=options["workspace"],
                tenant=options["tenant"],
                users=options["users"],
                scopes=chosen,
                trust=options["trust"],
                lifetime=None if options["expires"] is None else parse_lifetime(options["expires"]),
                actor=command_actor(),
            )
        except Refused as refused:
            raise CommandError(refused.message) from None
        self.stderr.write(
            f"Token '{options['name']}' for workspace '{options['workspace']}',"
            f" trust {options['trust']}, {_expiry(options['expires'])}. It is printed only once:"
        )
        self.stdout.write(token)
        if chosen is not None and CONFIRM in chosen and (writes := sorted(chosen & WRITES)):
            self.stderr.write(
                f"With {', '.join(writes)} it confirms no calls; for that, create one with"
                " --scopes continuity:write,confirm."
            )


def _expiry(lifetime: str | None) -> str:
    return "without expiry" if lifetime is None else f"expires after {lifetime.strip()}"
