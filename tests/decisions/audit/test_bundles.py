"""Exports are verified offline: any changed, added, missing or moved line is found."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from artifacts.models import Artifact
from artifacts.storage.blobs import blob_path, blob_storage
from decisions.audit.bundle import in_batches
from decisions.audit.chain import ChainHead, seals_after
from decisions.audit.record import AuditEvent, record
from decisions.audit.sealer import Sealer
from decisions.audit.verify_bundle import BundleReport, check_bundle
from decisions.authorization.confirmations import open_confirmation
from decisions.foundation.errors import Forbidden, RunNotFound
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, Confirmation, Decision
from runs.models import Run, RunEvent
from runs.queries.evidence import export_evidence
from runs.submission.cancel import cancel_run
from tests.support.audit.audit_attacks import attack
from tests.support.decisions.continuity import create_decision
from tests.support.rest.rest import refusal


@pytest.mark.usefixtures("principal")  # whose threads may use the database
def test_a_stream_sends_batches_of_so_many_lines_or_bytes() -> None:
    sizes_read: list[int] = []

    def lines() -> Iterator[bytes]:
        for size in [256 * 1024] * 20 + [10] * 1200:
            sizes_read.append(size)
            yield b"x" * size

    async def batches() -> list[tuple[int, int]]:
        return [(len(batch), len(sizes_read)) async for batch in in_batches(lines())]

    mebibyte = 1024 * 1024
    assert asyncio.run(batches()) == [
        *((mebibyte, lines) for lines in (4, 8, 12, 16, 20)),
        (5000, 520),
        (5000, 1020),
        (2000, 1220),
    ]


@pytest.fixture
def evidence(
    submit: Callable[..., str],
    principal: Principal,
    make_artifact: Callable[..., str],
    tmp_path: Path,
) -> Path:
    """Return the evidence of a canceled run with an artifact, with contents."""
    run_id = submit("ok", "ok")
    make_artifact(b"kept\n" * 100_000, run_id=run_id)
    cancel_run(principal=principal, run_id=run_id)
    Sealer().seal_all()
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(export_evidence(principal=principal, run_id=run_id, contents=True)))
    return path


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def check_changed(path: Path, change: Callable[[list[bytes]], object]) -> BundleReport:
    """Return the report of the check after the file's lines were changed."""
    lines = path.read_bytes().splitlines(keepends=True)
    change(lines)
    path.write_bytes(b"".join(lines))
    return check_bundle(path)


def test_the_evidence_of_a_run_is_complete_and_valid(evidence: Path) -> None:
    report, run = check_bundle(evidence), Run.objects.get()
    # The row about the export itself is committed first, and was not sealed in time.
    assert (report.faults, report.unsealed) == (0, 1), report.messages
    audit = AuditEntry.objects.filter(resource_id=run.id).count()
    assert dict(report.lines) == {
        "head": 1,
        "run": 1,
        "step": 2,
        "event": run.last_seq,
        "artifact": 1,
        "content": 3,
        "audit": audit,
        "end": 1,
    }


def test_evidence_is_downloaded_over_rest_as_a_file(
    api: httpx.Client, evidence: Path, client_with: Callable[..., httpx.Client]
) -> None:
    address = f"/api/v1/runs/{Run.objects.get().id}/evidence"
    response = api.get(address, params={"contents": "true"})
    assert response.headers["content-type"] == "application/x-ndjson"
    assert "attachment" in response.headers["content-disposition"]
    evidence.write_bytes(response.content)
    assert check_bundle(evidence).lines["content"] == 3
    assert check_bundle(evidence).faults == 0
    assert refusal(api.get("/api/v1/runs/run_x/evidence"), 404)["errorCode"] == "RUN_NOT_FOUND"
    assert refusal(api.get(address, params={"contents": "yes"}), 400)
    limited = client_with(scopes=frozenset({"audit:read"}))
    assert refusal(limited.get(address), 403)["details"] == {"scope": "runs:read"}


def test_no_secret_is_in_the_evidence(evidence: Path) -> None:
    text = evidence.read_text()
    assert "token_digest" not in text
    assert "deedKey" not in text


@pytest.mark.parametrize(
    ("change", "line", "reason"),
    [
        (lambda lines: lines.__setitem__(2, lines[2].replace(b'"ok', b'"OK')), 3, "changed"),
        (lambda lines: lines.pop(3), 4, "the line before it was removed"),
        (lambda lines: lines.insert(3, lines[4]), 4, "inserted or moved"),
        (lambda lines: lines.pop(), None, "the end is missing"),
        (lambda lines: lines.insert(5, b'{"type": "event"}\n'), 6, "it is not a line of a bundle"),
        (lambda lines: lines.pop(0), 1, "changed, inserted"),
        (lambda lines: lines.append(lines[-1]), None, "changed, inserted"),
        (lambda lines: lines.__setitem__(0, b"\xff\xfe\n"), 1, "not a line of a bundle"),
    ],
)
def test_a_line_that_was_tampered_with_is_named(
    evidence: Path, change: Callable[[list[bytes]], object], line: int | None, reason: str
) -> None:
    report = check_changed(evidence, change)
    assert report.faults >= 1
    assert reason in report.messages[0]
    if line is not None:
        assert report.messages[0].startswith(f"line {line}: ")


def test_another_installation_can_verify_no_line(evidence: Path) -> None:
    with override_settings(CONTINUITY_SECRET_KEYS=["n" * 40]):
        assert check_bundle(evidence).faults > len(records(evidence))


def test_a_file_that_is_not_a_bundle_is_reported(tmp_path: Path) -> None:
    for content in (b"", b"\n", b"hello", b"{}\n", bytes(100)):
        (tmp_path / "x").write_bytes(content)
        assert check_bundle(tmp_path / "x").faults >= 1, content


def test_a_forged_text_of_a_file_is_shown_in_visible_characters(evidence: Path) -> None:
    def forge(lines: list[bytes]) -> None:
        audited = next(n for n, line in enumerate(lines) if line.startswith(b'{"type":"audit"'))
        lines[audited] = re.sub(rb'"id":\d+', rb'"id":"\\u001b[2J\\udcff"', lines[audited])

    messages = check_changed(evidence, forge).messages
    assert any("the seal of row ⟨ESC⟩[2J⟨" in message for message in messages)
    assert "\x1b" not in "".join(messages)
    "".join(messages).encode()


def test_expired_bytes_are_listed_by_their_digest_alone(
    evidence: Path, principal: Principal
) -> None:
    Artifact.objects.update(expired_at=Run.objects.get().created_at)
    lines = list(export_evidence(principal=principal, run_id=Run.objects.get().id, contents=True))
    parsed = [json.loads(line) for line in lines]
    assert [one["expired"] for one in parsed if one["type"] == "artifact"] == [True]
    assert "content" not in {one["type"] for one in parsed}


def test_a_run_of_another_workspace_has_no_evidence(evidence: Path, outsider: Principal) -> None:
    with pytest.raises(RunNotFound):
        export_evidence(principal=outsider, run_id=Run.objects.get().id)


def test_evidence_needs_its_scopes(evidence: Path, principal: Principal) -> None:
    workspace = principal.tenant_id, principal.workspace_id
    run_id = Run.objects.get().id
    for scopes, contents in (
        ({"runs:read"}, False),
        ({"audit:read"}, False),
        ({"runs:read", "audit:read"}, True),
    ):
        limited = Principal("token:x", *workspace, frozenset(scopes), "local")
        with pytest.raises(Forbidden):
            export_evidence(principal=limited, run_id=run_id, contents=contents)


def test_an_export_of_evidence_is_audited(evidence: Path) -> None:
    entry = AuditEntry.objects.get(action="run.evidence_exported")
    assert (entry.resource_id, entry.metadata) == (Run.objects.get().id, {"contents": True})


@pytest.mark.slow
def test_the_commands_export_and_verify(principal: Principal, tmp_path: Path) -> None:
    for number in range(1200):
        record(
            AuditEvent("run.started", "local", "run", f"run_{number}", "t", "w", {"float": 1e20})
        )
    Sealer().seal_all()
    path, out = tmp_path / "audit.jsonl", StringIO()
    call_command("export_audit", output=str(path), action="run.started", stderr=out)
    call_command("verify_audit", bundle=str(path), stdout=out)
    assert "is intact: audit" in out.getvalue()
    assert "1200 audit" in out.getvalue()
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(CommandError, match="exists already"):
        call_command("export_audit", output=str(path))
    path.write_text(path.read_text().replace("run_700", "run_701", 1))
    with pytest.raises(CommandError, match=r"NOT intact: .* the first: line 702: it was changed"):
        call_command("verify_audit", bundle=str(path), stdout=out)
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("verify_audit", bundle=str(tmp_path / "none"))


def test_the_evidence_command_needs_a_run(evidence: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="There is no run run_x"):
        call_command("export_evidence", "run_x")
    path = tmp_path / "again.jsonl"
    call_command("export_evidence", Run.objects.get().id, output=str(path), stderr=StringIO())
    assert check_bundle(path).faults == 0
    assert not [one for one in records(path) if one["type"] == "content"]


def test_the_decisions_of_a_run_are_in_its_evidence_and_keep_their_secrets(
    submit: Callable[..., str], principal: Principal, tmp_path: Path
) -> None:
    run_id = submit("ok")
    decision = Decision.objects.create(
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        kind="step",
        principal_id=principal.id,
        mode="confirm",
        tool="bash.exec",
        run_id=run_id,
        step_index=0,
        subject_digest="d" * 64,
        call_key="k" * 64,
        arguments={"cmd": "ls"},
        created_at=datetime.now(UTC),
    )
    workspace = principal.tenant_id, principal.workspace_id
    record(AuditEvent("confirmation.tried", "local", "decision", str(decision.id), *workspace))
    record(AuditEvent("thing.done", "local", "other", str(decision.id), *workspace))
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(export_evidence(principal=principal, run_id=run_id)))
    assert check_bundle(path).faults == 0
    (decision_record,) = [one for one in records(path) if one["type"] == "decision"]
    assert (
        decision_record["tool"],
        decision_record["arguments"],
        decision_record["confirmation"],
    ) == (
        "bash.exec",
        {"cmd": "ls"},
        None,
    )
    actions = {one["action"] for one in records(path) if one["type"] == "audit"}
    assert "confirmation.tried" in actions
    assert "thing.done" not in actions
    assert "k" * 64 not in path.read_text()


def check_anew(principal: Principal, path: Path) -> str:
    """Export the run's evidence again; return the faults that its check finds."""
    run_id = Run.objects.get().id
    path.write_bytes(b"".join(export_evidence(principal=principal, run_id=run_id, contents=True)))
    return "\n".join(check_bundle(path).messages)


def test_evidence_shows_an_audit_row_that_was_edited(evidence: Path, principal: Principal) -> None:
    attack("UPDATE {rows} SET actor = 'x' WHERE action = 'run.canceled'")
    assert "was not written by Continuity, or was changed" in check_anew(principal, evidence)


def test_evidence_shows_a_seal_that_was_edited(evidence: Path, principal: Principal) -> None:
    attack("UPDATE {seals} SET hash = 'f' WHERE position = 1")
    assert "is not what the sealer wrote" in check_anew(principal, evidence)


def test_evidence_shows_a_seal_of_another_chain(evidence: Path, principal: Principal) -> None:
    first, second = AuditEntry.objects.order_by("id")[:2]
    assert {first.resource_id, second.resource_id} == {Run.objects.get().id}
    (link,) = seals_after(ChainHead(1, "f" * 64), [(second.id, second.mac)])
    attack(
        "UPDATE {seals} SET prev = %(prev)s, hash = %(hash)s WHERE position = 2",
        prev=link.prev,
        hash=link.hash,
    )
    assert "does not follow the one before" in check_anew(principal, evidence)


def test_evidence_shows_a_missing_event(evidence: Path, principal: Principal) -> None:
    RunEvent.objects.filter(seq=1).delete()
    assert "an event is missing: expected seq 1" in check_anew(principal, evidence)


def test_evidence_shows_changed_bytes_of_an_artifact(evidence: Path, principal: Principal) -> None:
    stored = Path(cast("Any", blob_storage()).path(blob_path(Artifact.objects.get().sha256)))
    stored.unlink()
    stored.write_bytes(b"lost\n" * 100_000)
    assert "bytes do not match its sha256" in check_anew(principal, evidence)


def test_no_token_digest_is_in_the_evidence(
    submit: Callable[..., str], principal: Principal
) -> None:
    run_id = submit("ok")
    open_confirmation(create_decision(principal, mode="confirm"), delivery="inline")
    Decision.objects.update(run_id=run_id)
    evidence = b"".join(export_evidence(principal=principal, run_id=run_id)).decode()
    confirmation = Confirmation.objects.get()
    assert confirmation.id in evidence
    assert confirmation.token_digest
    assert confirmation.token_digest not in evidence
