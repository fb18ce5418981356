"""`manage.py confirm ID`: show what waits for a person, page by page, and decide it."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from decisions.audit.record import command_actor
from decisions.authorization.confirmations import RENEW, decide
from decisions.authorization.decision_pages import DecisionPage, as_text, decision_page
from decisions.authorization.request_lines import request_line
from decisions.foundation.errors import Refused
from decisions.foundation.presentation.visible_text import visible
from decisions.models import Confirmation, ConfirmationStatus
from runs.operations.home.prepare import prepare_home


class Command(BaseCommand):
    """Shows a decision, and confirms or refuses it. Every user who can run this command may do so.

    At a terminal it shows all pages and asks. Elsewhere it shows one page; the last one has the
    digest with which `--shown` confirms.
    """

    help = "Show what waits for a person, by the number of its decision, and confirm or refuse it."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the decision, the page and the answer."""
        parser.add_argument("decision", type=int, help="waitingFor.decisionId, or from the inbox")
        parser.add_argument("--page", type=int, default=1, help="show this page (default: 1)")
        parser.add_argument("--shown", help="confirm; the digest is at the end of the last page")
        parser.add_argument("--refuse", action="store_true", help="refuse")
        about = "what the call works on has changed: have its run request a new confirmation"
        parser.add_argument("--renew", action="store_true", help=about)

    def handle(self, *args: Any, **options: Any) -> None:
        """Show the decision, or decide it and print the result."""
        prepare_home()
        number = options["decision"]
        if answer := _answer(options):
            self._decide(number, answer, shown=options["shown"] or None)
            return
        confirmation = _waiting(number)
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            self._show(confirmation, options["page"])
            return
        page = self._show_all(confirmation)
        if page.digest and _read(f"Confirm decision {number}? [y/N] ") == "y":
            self._decide(number, "confirm", shown=page.digest)
        elif page.may_renew and _read(f"Request decision {number} anew? [y/N] ") == "y":
            self._decide(number, RENEW)
        elif _read(f"Refuse decision {number}? [y/N] ") == "y":
            self._decide(number, "refuse")

    def _show_all(self, confirmation: Confirmation) -> DecisionPage:
        page = self._show(confirmation, 1, asks=True)
        while not page.is_last:
            _read(f"Page {page.number} of {page.count}; Enter shows the next one. ")
            page = self._show(confirmation, page.number + 1, asks=True)
        return page

    def _show(self, confirmation: Confirmation, number: int, *, asks: bool = False) -> DecisionPage:
        decision = confirmation.decision
        page = decision_page(decision, number)
        about = f" on {visible(decision.target_id)}" if decision.target_id else ""
        self.stdout.write(f"Decision {decision.pk}: {visible(decision.tool or 'message')}{about}")
        self.stdout.write(f"Request: {request_line(decision)}")
        self.stdout.write(f"Rule: {decision.rule} {visible(decision.reason)}".rstrip())
        self.stdout.write(as_text(page))
        if not asks:
            self.stdout.write(_next_command(decision.pk, page))
        return page

    def _decide(self, number: int, answer: str, *, shown: str | None = None) -> None:
        by = command_actor()
        try:
            decided = decide(answer=answer, decision_id=number, by=by, how="command", shown=shown)
        except Refused as refusal:
            raise CommandError(refusal.message) from None
        self.stdout.write(f"decision {number} {decided.status}")


def _answer(options: dict[str, Any]) -> str:
    """Return the answer that the options name; empty: show the decision."""
    given = {"refuse": options["refuse"], RENEW: options["renew"], "confirm": options["shown"]}
    return next((answer for answer, is_given in given.items() if is_given), "")


def _read(question: str) -> str:
    """Return the line that the person types.

    Raises:
        CommandError: The input ended, or the person pressed Ctrl-C.
    """
    try:
        return input(question).strip().lower()
    except (EOFError, KeyboardInterrupt):
        raise CommandError("Nothing was decided.") from None


def _waiting(number: int) -> Confirmation:
    rows = Confirmation.objects.select_related("decision")
    confirmation = rows.filter(decision_id=number).first()
    if confirmation is None:
        raise CommandError(f"No decision {number} needs a confirmation.")
    if confirmation.status != ConfirmationStatus.WAITING:
        raise CommandError(f"Decision {number} is {confirmation.status} already.")
    return confirmation


def _next_command(number: int, page: DecisionPage) -> str:
    command = f"manage.py confirm {number}"
    if not page.is_last:
        more = f"Page {page.number} of {page.count}. Next: {command} --page {page.number + 1}"
        return f"\n{more}"
    lines = [f"Page {page.number} of {page.count}."] if page.count > 1 else []
    lines += [f"Confirm: {command} --shown {page.digest}"] if page.digest else []
    lines += [f"Request anew: {command} --renew"] if page.may_renew else []
    return "\n".join(["", *lines, f"Refuse: {command} --refuse"])
