"""Sealers that are killed while they seal leave one complete audit chain."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from django.db import connection

from decisions.audit.checkpoints import read_checkpoints
from decisions.audit.record import AuditEvent, record_all
from decisions.audit.verify import check_audit_log
from decisions.models import AuditEntry, AuditSeal
from tests.faults.installation import FaultInstallation


@contextmanager
def write_audit_rows() -> Iterator[None]:
    """Write audit rows from another thread, without a pause."""
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            run_id = f"run_{number}"
            record_all(
                [
                    AuditEvent("run.started", "local", "run", run_id, "t", "w", {"n": n})
                    for n in range(50)
                ]
            )
            stop.wait(0.005)
        connection.close()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)


def more_than(before: int) -> bool:
    return AuditSeal.objects.count() > before


def test_sealers_killed_while_sealing_leave_one_complete_chain(
    installation: FaultInstallation,
) -> None:
    schedulers = [installation.start("scheduler"), installation.start("scheduler")]
    with write_audit_rows():
        for _ in range(4):
            installation.wait_until(
                partial(more_than, AuditSeal.objects.count()), "no row was sealed"
            )
            schedulers.pop(0).kill()
            schedulers.append(installation.start("scheduler"))
    installation.wait_until(
        lambda: AuditSeal.objects.count() == AuditEntry.objects.count(), "rows are left"
    )
    report = check_audit_log()
    assert (report.faults, report.unsealed) == (0, 0), report.messages
    installation.wait_until(
        lambda: read_checkpoints().heads[-1].position == AuditSeal.objects.count(), "no checkpoint"
    )
