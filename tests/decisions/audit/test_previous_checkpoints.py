"""Checkpoints that a scheduler of the previous version saves in the same home: not signed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as present

from decisions.audit.chain import ChainHead, head_of_chain
from decisions.audit.checkpoints import newest_checkpoint
from decisions.audit.incidents import accept_incidents
from decisions.audit.record import AuditEvent, record
from decisions.audit.sealer import Sealer
from decisions.audit.verify import check_audit_log
from decisions.identity.principals import Principal


@pytest.fixture(autouse=True)
def folder(principal: Principal) -> Iterator[Path]:
    """The folder of the checkpoints, with a signed one of a chain of one row."""
    found = Path(present.CONTINUITY_HOME) / "audit"
    shutil.rmtree(found, ignore_errors=True)
    seal_row()
    yield found
    shutil.rmtree(found, ignore_errors=True)


def seal_row() -> None:
    record(AuditEvent("run.started", "local", "run", "run_1", "ten_1", "ws_1"))
    Sealer().seal_all()


def save_as_previous_version(folder: Path, head: ChainHead) -> None:
    line = json.dumps({"position": head.position, "hash": head.hash, "at": 1795000000}) + "\n"
    (folder / "head.json").write_text(line)
    with (folder / "checkpoints.jsonl").open("a") as file:
        file.write(line)


def test_they_count_during_a_rolling_upgrade(folder: Path, settings: Any) -> None:
    settings.ROLLING_UPGRADE = True
    save_as_previous_version(folder, head_of_chain())
    seal_row()
    assert "proof" in (folder / "head.json").read_text()
    save_as_previous_version(folder, head_of_chain())
    seal_row()
    assert check_audit_log().faults == 0
    newest = newest_checkpoint()
    assert newest is not None
    assert (newest.head, newest.number) == (head_of_chain(), 1)


def test_they_are_replaced_when_the_upgrade_is_finished(folder: Path, settings: Any) -> None:
    settings.ROLLING_UPGRADE = True
    save_as_previous_version(folder, head_of_chain())
    seal_row()
    settings.ROLLING_UPGRADE = False
    assert check_audit_log().faults == 1
    accept_incidents(reason="upgraded", actor="t")
    Sealer().seal_all()
    assert check_audit_log().faults == 0


def test_they_show_a_shortened_chain(folder: Path, settings: Any) -> None:
    settings.ROLLING_UPGRADE = True
    save_as_previous_version(folder, ChainHead(9, "0" * 64))
    assert "a checkpoint has it as head" in str(check_audit_log().messages)


def test_they_count_for_nothing_otherwise(folder: Path) -> None:
    save_as_previous_version(folder, head_of_chain())
    assert newest_checkpoint() is None
    seal_row()
    assert "the checkpoints were missing" in str(check_audit_log().messages)
    assert "without signature, of an older version, or forged" in str(check_audit_log().messages)
