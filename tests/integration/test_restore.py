"""A restored installation continues from its backup; an incompatible backup is refused, and a
failed restore is rolled back.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from tests.support.installations import LOOK, ON_POSTGRESQL, SUBMIT, USE, Place, copy_of, keys_of

pytest_plugins = ["tests.support.installation_fixtures"]
# Each command is a process of its own and takes seconds on a busy machine.
pytestmark = pytest.mark.timeout(600)


def test_a_restored_installation_continues_from_the_backup(
    old: Place, new: Place, whole: Path
) -> None:
    run, artifact, token = old.made
    new.run("restore", str(whole))
    assert "is intact" in new.run("verify_audit")
    found = new.python(LOOK.format(run=run, artifact=artifact, token=token))
    assert found == ["FOUND", "succeeded", "b'kept", "bytes'", "local"]
    told_by_audit = new.run("export_audit")
    assert "installation.backed_up" in told_by_audit
    assert "installation.restored" in told_by_audit


def test_existing_data_are_replaced_only_with_force(
    old: Place, tmp_path: Path, servers: dict[str, str], whole: Path
) -> None:
    count = "from runs.models import Run; print(*Run.objects.values_list('id', flat=True))"
    with copy_of(old, tmp_path, servers, "other") as other:
        mine = other.python(SUBMIT)[1]
        assert "--force" in other.refused("restore", str(whole))
        assert mine in other.python(count)
        other.run("restore", str(whole), "--force")
        assert mine not in other.python(count)
        assert "is intact" in other.run("verify_audit")
        (aside,) = other.home.at.home.glob("replaced-*")
        assert (aside / "audit" / "head.json").exists()
        assert (aside / "continuity.sqlite3").exists() is not ON_POSTGRESQL


def test_a_failed_restore_leaves_the_existing_data(
    old: Place, tmp_path: Path, servers: dict[str, str], kept: Path
) -> None:
    database = next(kept.glob("database.*"))
    database.write_bytes(b"no database" * 1000)
    manifest = json.loads((kept / "manifest.json").read_text())
    size = database.stat().st_size
    told = hashlib.sha256(database.read_bytes()).hexdigest()
    manifest["files"][database.name] = [told, size]
    (kept / "manifest.json").write_text(json.dumps(manifest))
    with copy_of(old, tmp_path, servers, "other") as other:
        other.refused("restore", str(kept), "--force")
        assert "is intact" in other.run("verify_audit")
        run, artifact, token = other.made
        found = other.python(LOOK.format(run=run, artifact=artifact, token=token))
        assert found[:2] == ["FOUND", "succeeded"]


@pytest.mark.parametrize("harm", ["database", "artifact", "manifest", "gone", "path"])
def test_a_damaged_backup_is_refused_and_changes_nothing(new: Place, kept: Path, harm: str) -> None:
    database = next(kept.glob("database.*"))
    artifact = next(path for path in (kept / "artifacts").rglob("*") if path.is_file())
    manifest = kept / "manifest.json"
    if harm == "database":
        database.write_bytes(database.read_bytes()[:-1] + b"x")
    elif harm == "artifact":
        artifact.write_bytes(b"KEPT bytes")
    elif harm == "manifest":
        manifest.unlink()
    elif harm == "gone":
        shutil.rmtree(kept / "artifacts")
    else:
        manifest.write_text(manifest.read_text().replace('"audit/head.json"', '"../head.json"'))
    new.refused("restore", str(kept))
    assert not (new.home.at.home / "continuity.sqlite3").exists()
    assert not (new.home.at.home / "artifacts").exists()
    if ON_POSTGRESQL:
        assert "lacks" in new.home.run("verify_audit").stderr  # every migration


def test_a_backup_made_with_other_keys_is_refused_unless_the_loss_is_accepted(
    old: Place, new: Place, keyless: Path
) -> None:
    other = {"CONTINUITY_SECRET_KEYS": "another-key-" + "z" * 40}
    assert "CONTINUITY_SECRET_KEYS" in new.refused("restore", str(keyless), **other)
    new.run("restore", str(keyless), "--without-keys", **other)
    code = f"from decisions.identity.principals import authenticate; authenticate({old.made[2]!r})"
    assert "NotAuthenticated" in new.home.run("shell", "-c", code, **other).stderr
    assert "NOT intact" in new.refused("verify_audit", **other)


def test_a_restore_works_when_the_old_keys_are_configured_beside_newer_ones(
    old: Place, new: Place, keyless: Path
) -> None:
    both = {"CONTINUITY_SECRET_KEYS": f"a-newer-key-{'n' * 40},{keys_of(old)}"}
    new.run("restore", str(keyless), **both)
    assert "is intact" in new.run("verify_audit", **both)


def test_a_database_in_use_is_not_replaced(new: Place, whole: Path) -> None:
    new.run("restore", str(whole))
    using = new.home.start("shell", "--no-imports", "-c", USE)
    using.until("USES")
    said = new.refused("restore", str(whole), "--force")
    assert ("connections use" if ON_POSTGRESQL else "A process uses") in said


def test_a_backup_of_the_other_database_or_of_a_newer_version_is_refused(
    new: Place, kept: Path
) -> None:
    manifest = kept / "manifest.json"
    told = json.loads(manifest.read_text())
    other = "sqlite" if ON_POSTGRESQL else "postgresql"
    manifest.write_text(json.dumps(told | {"database": other}))
    assert "DATABASE_URL" in new.refused("restore", str(kept))
    newer = [*told["migrations"], "runs.9999_of_next_year"]
    manifest.write_text(json.dumps(told | {"migrations": newer}))
    assert "newer version" in new.refused("restore", str(kept))
