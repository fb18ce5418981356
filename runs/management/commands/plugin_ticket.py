"""`manage.py plugin_ticket`: create a ticket that pairs a browser with this installation."""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from decisions.audit.record import command_actor
from decisions.foundation.errors import Refused
from decisions.identity.principals import LOCAL, local_principal
from decisions.identity.tokens import principal_of_token
from runners.paired_browser.pairing.tickets import LIFETIME, create_ticket
from runs.operations.home.errors import StackError
from runs.operations.home.prepare import prepare_home
from runs.operations.home.state import live_info


class Command(BaseCommand):
    """Prints the ticket on stdout, and what to do with it on stderr."""

    help = (
        "Create a ticket that pairs a browser: paste it in the extension's options. It works once."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add whose browser it is and its name."""
        parser.add_argument(
            "--token",
            metavar="ID",
            help="the tasks of this token may use the browser (default: those of this machine's"
            " user: agent hosts over MCP stdio)",
        )
        parser.add_argument("--name", default="", help="the browser's name (default: its program)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create and print the ticket."""
        try:
            prepare_home()
            token_id = options["token"]
            owner = local_principal() if token_id is None else principal_of_token(token_id)
            actor = command_actor()
            ticket = create_ticket(principal=owner, name=options["name"], actor=actor)["ticket"]
        except (StackError, Refused) as problem:
            self.stderr.write(str(problem))
            sys.exit(1)
        whose = "this machine's user" if owner.id == LOCAL else owner.id
        minutes = int(LIFETIME.total_seconds() // 60)
        info = live_info()
        server = settings.PUBLIC_URL or (info.url if info else "")
        self.stderr.write(
            f"A browser for the tasks of {whose}. In the options of the extension, enter the server"
            f" {server or '(not running: start it with `manage.py up`)'} and, within {minutes}"
            " minutes, this ticket:"
        )
        self.stdout.write(ticket)
