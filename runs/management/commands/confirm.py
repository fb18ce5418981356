"""`manage.py confirm ID [--refuse]`: decide what waits for a confirmation."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from decisions.audit.record import command_actor
from decisions.authorization.confirmations import confirm, refuse
from decisions.errors import Refused
from decisions.models import Decision
from decisions.presentation.formatting import exact_json
from runs.installation.home.prepare import prepare_home


class Command(BaseCommand):
    """Confirms or refuses a decision. Every user who can run this command may do so."""

    help = "Confirm what waits for a person, by the number of its decision; --refuse refuses it."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the decision and the answer."""
        parser.add_argument("decision", type=int, help="waitingFor.decisionId, or from the inbox")
        parser.add_argument("--refuse", action="store_true", help="refuse instead of confirm")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the tool call, decide it, and print the result."""
        prepare_home()
        number, decide = options["decision"], refuse if options["refuse"] else confirm
        decision = Decision.objects.filter(pk=number).first()
        if decision is not None:
            self.stderr.write(f"{decision.tool or 'chat'} {exact_json(decision.arguments)}")
        try:
            decided = decide(decision_id=number, by=command_actor(), how="command")
        except Refused as refusal:
            raise CommandError(refusal.message) from None
        self.stdout.write(f"decision {number} {decided.status}")
