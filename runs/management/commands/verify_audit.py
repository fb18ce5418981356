"""Check the audit log: `manage.py verify_audit`; or a file that was exported, without a database:
`manage.py verify_audit --bundle FILE`.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from decisions.audit.verify import AuditReport, check_audit_log
from decisions.audit.verify_bundle import check_bundle, describe_head
from decisions.presentation.formatting import duration
from runs.installation.home.prepare import prepare_home

LATE_S = 60.0  # a row that is not sealed by then says that no scheduler runs


class Command(BaseCommand):
    """Say in a line or a few whether the log is whole; exit 1 where it is not."""

    help = "Check every row, link and checkpoint of the audit log."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what to check."""
        parser.add_argument(
            "--bundle",
            metavar="FILE",
            help="a file of export_audit or export_evidence to check instead, without a database",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Check and tell."""
        if options["bundle"]:
            self._check_bundle(options["bundle"])
            return
        prepare_home()
        began = time.monotonic()
        report = check_audit_log(processes=os.cpu_count() or 1)
        took_s = time.monotonic() - began
        self._tell_faults("The audit log", report.faults, report.messages)
        self.stdout.write(_summary(report, took_s))

    def _check_bundle(self, name: str) -> None:
        try:
            report = check_bundle(Path(name))
        except OSError as error:
            raise CommandError(f"{name} cannot be read: {error.strerror}.") from None
        self._tell_faults(name, report.faults, report.messages)
        counts = ", ".join(f"{count} {kind}" for kind, count in report.lines.items())
        self.stdout.write(f"{name} is whole: {describe_head(report.head)}.\nLines: {counts}.")
        if report.unsealed:
            self.stdout.write(f"Not sealed when it was made: {report.unsealed} of its audit rows.")

    def _tell_faults(self, what: str, faults: int, told: list[str]) -> None:
        if not faults:
            return
        for fault in told:
            self.stdout.write(fault)
        if faults > len(told):
            self.stdout.write(f"… and {faults - len(messages)} more.")
        many = "1 fault" if faults == 1 else f"{faults} faults"
        raise CommandError(f"{what} is NOT whole: {many}; the first: {messages[0]}.")


def _summary(report: AuditReport, took_s: float) -> str:
    speed = (report.sealed + report.unsealed) / took_s if took_s else 0.0
    told = (
        f"The audit log is whole: {report.sealed} sealed rows in one chain,"
        f" {report.checkpoints} checkpoints, {duration(took_s * 1000)} ({speed:.0f} rows/s)."
    )
    if not report.unsealed:
        return told
    told += f"\nNot sealed yet: {report.unsealed}"
    if report.oldest_unsealed is not None:
        age_s = (datetime.now(UTC) - report.oldest_unsealed).total_seconds()
        told += f", the oldest for {duration(max(0.0, age_s) * 1000)}"
        if age_s > LATE_S:
            told += (
                ": does a scheduler run? Until they are sealed, a removal of them leaves no trace"
            )
    return told + "."
