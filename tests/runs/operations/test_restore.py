"""A restored installation continues from its backup; an incompatible backup is refused, and a
failed restore is rolled back.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from tests.support.installation.installations import (
    ON_POSTGRESQL,
    READ_BACK,
    SUBMIT,
    USE,
    Installation,
    copy_of,
    keys_of,
)

# Each command is a process of its own and takes seconds on a busy machine.
pytestmark = pytest.mark.timeout(600)


@pytest.mark.slow
def test_a_restored_installation_continues_from_the_backup(
    source_installation: Installation, empty_installation: Installation, backup: Path
) -> None:
    run, artifact, token = source_installation.created
    empty_installation.run("restore", str(backup))
    assert "is intact" in empty_installation.run("verify_audit")
    found = empty_installation.python(READ_BACK.format(run=run, artifact=artifact, token=token))
    assert found == ["FOUND", "succeeded", "b'some", "bytes'", "local"]
    exported = empty_installation.run("export_audit")
    assert "installation.backed_up" in exported
    assert "installation.restored" in exported


@pytest.mark.slow
@pytest.mark.skipif(not ON_POSTGRESQL, reason="a restore creates the embedded database itself")
def test_a_database_that_was_only_migrated_counts_as_empty(
    source_installation: Installation, empty_installation: Installation, backup: Path
) -> None:
    empty_installation.run("migrate", "--verbosity", "0")
    empty_installation.run("restore", str(backup))
    assert "is intact" in empty_installation.run("verify_audit")


APPROVE = """
from django.contrib.sessions.backends.db import SessionStore
from decisions.authorization.authorize import ToolCallRequest, authorize, request_confirmation
from decisions.authorization.confirmations import confirm
from decisions.authorization.sealed_arguments import shown_digest
from decisions.identity.principals import create_token, local_principal
from decisions.models import Decision
principal = local_principal()
owner = {"tenant_id": principal.tenant_id, "workspace_id": principal.workspace_id}
call = ToolCallRequest(principal_id=principal.id, user_id=None, tool="delete_all", args={}, **owner)
asked = request_confirmation(call, authorize(call))
shown = shown_digest(Decision.objects.get())
confirm(decision_id=asked.decision_id, by="admin:ann", how="admin", shown=shown)
SessionStore().create()
print("APPROVED", create_token(name="leaked"))
"""
USE_AND_REVOKE = """
from decisions.identity.tokens import revoke_token
from decisions.models import Confirmation, Token
Confirmation.objects.update(used_at="2026-01-01T00:00:00Z")
revoke_token(token_id=Token.objects.get(name="leaked").id, actor="admin:ann")
"""
STATE = """
from django.contrib.sessions.models import Session
from decisions.identity.principals import authenticate
from decisions.models import AuditEntry, Confirmation
restored = AuditEntry.objects.filter(action="installation.restored").get().metadata
ended = restored.get("approvalsExpired"), restored.get("sessionsEnded")
approval = Confirmation.objects.values_list("status", "used_at").get()
print("STATE", *approval, Session.objects.count(), authenticate("{token}").trust, *ended)
"""


@pytest.mark.slow
def test_an_approval_that_was_used_after_the_backup_cannot_be_used_again(
    source_installation: Installation, tmp_path: Path, servers: dict[str, str]
) -> None:
    with copy_of(source_installation, tmp_path, servers, "other") as other:
        token = other.python(APPROVE)[1]
        other.run("backup", str(tmp_path / "yesterday"))
        other.run("shell", "--no-imports", "-c", USE_AND_REVOKE)
        printed = other.run("restore", str(tmp_path / "yesterday"), "--force")
        state = other.python(STATE.format(token=token))
        assert state == ["STATE", "expired", "None", "0", "remote", "1", "1"]
        assert "expired     1 unused approvals; ended 1 admin sessions" in printed
        assert "undone      what was revoked or changed after 20" in printed
        assert "is intact" in other.run("verify_audit")


@pytest.mark.slow
def test_existing_data_are_replaced_only_with_force(
    source_installation: Installation, tmp_path: Path, servers: dict[str, str], backup: Path
) -> None:
    count = "from runs.models import Run; print(*Run.objects.values_list('id', flat=True))"
    with copy_of(source_installation, tmp_path, servers, "other") as other:
        run_id = other.python(SUBMIT)[1]
        assert "--force" in other.refused("restore", str(backup))
        assert run_id in other.python(count)
        other.run("restore", str(backup), "--force")
        assert run_id not in other.python(count)
        assert "is intact" in other.run("verify_audit")
        (replaced,) = other.home.paths.home.glob("replaced-*")
        assert (replaced / "audit" / "head.json").exists()
        assert (replaced / "continuity.sqlite3").exists() is not ON_POSTGRESQL


@pytest.mark.slow
def test_a_failed_restore_leaves_the_existing_data(
    source_installation: Installation, tmp_path: Path, servers: dict[str, str], backup_copy: Path
) -> None:
    database = next(backup_copy.glob("database.*"))
    database.write_bytes(b"no database" * 1000)
    manifest = json.loads((backup_copy / "manifest.json").read_text())
    size = database.stat().st_size
    digest = hashlib.sha256(database.read_bytes()).hexdigest()
    manifest["files"][database.name] = [digest, size]
    (backup_copy / "manifest.json").write_text(json.dumps(manifest))
    with copy_of(source_installation, tmp_path, servers, "other") as other:
        other.refused("restore", str(backup_copy), "--force")
        assert "is intact" in other.run("verify_audit")
        run, artifact, token = other.created
        found = other.python(READ_BACK.format(run=run, artifact=artifact, token=token))
        assert found[:2] == ["FOUND", "succeeded"]


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["database", "artifact", "manifest", "gone", "path"])
def test_a_damaged_backup_is_refused_and_changes_nothing(
    empty_installation: Installation, backup_copy: Path, harm: str
) -> None:
    database = next(backup_copy.glob("database.*"))
    artifact = next(path for path in (backup_copy / "artifacts").rglob("*") if path.is_file())
    manifest = backup_copy / "manifest.json"
    if harm == "database":
        database.write_bytes(database.read_bytes()[:-1] + b"x")
    elif harm == "artifact":
        artifact.write_bytes(b"SOME bytes")
    elif harm == "manifest":
        manifest.unlink()
    elif harm == "gone":
        shutil.rmtree(backup_copy / "artifacts")
    else:
        manifest.write_text(manifest.read_text().replace('"audit/head.json"', '"../head.json"'))
    empty_installation.refused("restore", str(backup_copy))
    assert not (empty_installation.home.paths.home / "continuity.sqlite3").exists()
    assert not (empty_installation.home.paths.home / "artifacts").exists()
    if ON_POSTGRESQL:
        assert "lacks" in empty_installation.home.run("verify_audit").stderr  # every migration


@pytest.mark.slow
def test_a_backup_made_with_other_keys_is_refused_unless_the_loss_is_accepted(
    source_installation: Installation, empty_installation: Installation, backup_without_keys: Path
) -> None:
    other = {"CONTINUITY_SECRET_KEYS": "another-key-" + "z" * 40}
    assert "CONTINUITY_SECRET_KEYS" in empty_installation.refused(
        "restore", str(backup_without_keys), **other
    )
    empty_installation.run("restore", str(backup_without_keys), "--without-keys", **other)
    token = source_installation.created[2]
    code = f"from decisions.identity.principals import authenticate; authenticate({token!r})"
    assert "NotAuthenticated" in empty_installation.home.run("shell", "-c", code, **other).stderr
    assert "NOT intact" in empty_installation.refused("verify_audit", **other)


@pytest.mark.slow
def test_a_restore_works_when_the_old_keys_are_configured_beside_newer_ones(
    source_installation: Installation, empty_installation: Installation, backup_without_keys: Path
) -> None:
    both_keys = {"CONTINUITY_SECRET_KEYS": f"a-newer-key-{'n' * 40},{keys_of(source_installation)}"}
    empty_installation.run("restore", str(backup_without_keys), **both_keys)
    assert "is intact" in empty_installation.run("verify_audit", **both_keys)


@pytest.mark.slow
def test_a_database_in_use_is_not_replaced(empty_installation: Installation, backup: Path) -> None:
    empty_installation.run("restore", str(backup))
    process = empty_installation.home.start("shell", "--no-imports", "-c", USE)
    process.wait_for_line("USES")
    message = empty_installation.refused("restore", str(backup), "--force")
    assert ("connections use" if ON_POSTGRESQL else "A process uses") in message


@pytest.mark.slow
def test_a_backup_of_the_other_database_or_of_a_newer_version_is_refused(
    empty_installation: Installation, backup_copy: Path
) -> None:
    manifest = backup_copy / "manifest.json"
    content = json.loads(manifest.read_text())
    other = "sqlite" if ON_POSTGRESQL else "postgresql"
    manifest.write_text(json.dumps(content | {"database": other}))
    assert "DATABASE_URL" in empty_installation.refused("restore", str(backup_copy))
    newer = [*content["migrations"], "runs.9999_of_next_year"]
    manifest.write_text(json.dumps(content | {"migrations": newer}))
    assert "newer version" in empty_installation.refused("restore", str(backup_copy))
