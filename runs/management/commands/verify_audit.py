"""`manage.py verify_audit`: verify the audit log, or with `--bundle FILE` an exported file."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from decisions.audit.incidents import accept_incidents
from decisions.audit.record import command_actor
from decisions.audit.verify import AuditReport, check_audit_log
from decisions.audit.verify_bundle import check_bundle, describe_head
from decisions.foundation.presentation.formatting import duration
from decisions.foundation.presentation.visible_text import visible
from decisions.identity.unaudited_rights import list_unaudited_rights
from runs.operations.home.prepare import prepare_home


class Command(BaseCommand):
    """Prints whether the log is intact; exits 1 if it is not."""

    help = "Verify every row, hash link and checkpoint of the audit log."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the file to verify."""
        parser.add_argument(
            "--bundle",
            metavar="FILE",
            help="a file of export_audit, export_evidence or archive_audit to verify instead,"
            " without a database",
        )

        parser.add_argument(
            "--accept-incidents",
            metavar="REASON",
            help="record that what the sealer found is known (docs/audit.md), then verify",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Verify, and print the result."""
        if options["bundle"]:
            self._check_bundle(options["bundle"])
            return
        prepare_home()
        if options["accept_incidents"] is not None:
            self._accept(options["accept_incidents"].strip())
        started_at = time.monotonic()
        report = check_audit_log(processes=os.cpu_count() or 1)
        took_s = time.monotonic() - started_at
        self._print_unaudited_rights()
        self._print_faults("The audit log", report.faults, report.messages)
        self.stdout.write(_summary(report, took_s))

    def _print_unaudited_rights(self) -> None:
        found = list_unaudited_rights()
        if not found:
            return
        self.stdout.write(
            f"Rights that no audit row explains: {len(found)}. They were archived, made by"
            " createsuperuser, renamed, or written to the database by someone else:"
        )
        for text in found:
            self.stdout.write(f"  {visible(text)}")

    def _accept(self, reason: str) -> None:
        if not reason:
            raise CommandError("--accept-incidents: give the reason; it is recorded.")
        try:
            accepted = accept_incidents(reason=reason, actor=command_actor())
        except OSError as error:
            raise CommandError(
                f"The acceptance is recorded, but the checkpoints were not replaced: {error}."
                " Repeat the command when CONTINUITY_HOME can be written."
            ) from None
        gaps = f", {_many(accepted.gaps, 'gap')} of forged seals" if accepted.gaps else ""
        self.stdout.write(f"Accepted: {_many(accepted.incidents, 'incident')}{gaps}.")
        if accepted.moved_to:
            self.stdout.write(f"The previous checkpoints are in {accepted.moved_to}.")
        elif accepted.has_new_checkpoints:
            self.stdout.write("New checkpoints were started; there were none.")

    def _check_bundle(self, name: str) -> None:
        try:
            report = check_bundle(Path(name))
        except OSError as error:
            raise CommandError(f"{name} cannot be read: {error.strerror}.") from None
        self._print_faults(name, report.faults, report.messages)
        counts = ", ".join(f"{count} {kind}" for kind, count in report.lines.items())
        self.stdout.write(f"{name} is intact: {describe_head(report.head)}.\nLines: {counts}.")
        if report.unsealed:
            self.stdout.write(f"Not sealed at the export: {report.unsealed} of its audit rows.")

    def _print_faults(self, what: str, faults: int, messages: list[str]) -> None:
        if not faults:
            return
        for message in messages:
            self.stdout.write(message)
        if faults > len(messages):
            self.stdout.write(f"… and {faults - len(messages)} more.")
        many = _many(faults, "fault")
        raise CommandError(f"{what} is NOT intact: {many}; the first: {messages[0]}.")


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _summary(report: AuditReport, took_s: float) -> str:
    speed = (report.sealed + report.unsealed) / took_s if took_s else 0.0
    text = (
        f"The audit log is intact: {_many(report.sealed, 'sealed row')} in one chain,"
        f" {_many(report.checkpoints, 'checkpoint')}, {duration(took_s * 1000)}"
        f" ({speed:.0f} rows/s)."
    )
    if report.archived:
        text += f"\nArchived and not removed: {report.archived}. Repeat archive_audit."
    if not report.unsealed:
        return text
    oldest = duration(report.oldest_unsealed_s * 1000)
    return f"{text}\nNot sealed yet: {report.unsealed}, the oldest for {oldest}."
