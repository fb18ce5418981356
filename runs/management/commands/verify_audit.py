"""Check the audit log: `manage.py verify_audit`."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from decisions.audit_check import Report, check_audit_log
from decisions.wording import duration
from runs.stack.prepare import prepare_home

LATE_S = 60.0  # a row that is not sealed by then says that no scheduler runs


class Command(BaseCommand):
    """Say in a line or a few whether the log is whole; exit 1 where it is not."""

    help = "Check every row, link and checkpoint of the audit log."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Check and tell."""
        prepare_home()
        began = time.monotonic()
        report = check_audit_log()
        took_s = time.monotonic() - began
        for told in report.told:
            self.stdout.write(told)
        if report.faults > len(report.told):
            self.stdout.write(f"… and {report.faults - len(report.told)} more.")
        if report.faults:
            many = "1 fault" if report.faults == 1 else f"{report.faults} faults"
            raise CommandError(f"The audit log is NOT whole: {many}; the first: {report.told[0]}.")
        self.stdout.write(_summary(report, took_s))


def _summary(report: Report, took_s: float) -> str:
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
