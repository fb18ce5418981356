"""Artifacts: bytes are stored once, read in whole characters, and deleted only without a
reference."""

from __future__ import annotations

import base64
import os
import random
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db.models.signals import post_init

from artifacts import expiry
from artifacts.chunks import CHUNK_MAX, read_chunk, read_chunk_of_run
from artifacts.expiry import collect_blobs, expire_artifacts
from artifacts.models import Artifact
from artifacts.selectors import artifact_briefs_of, artifact_ids_of, list_run_artifacts
from artifacts.services import store_blob
from artifacts.storage import blobs
from artifacts.storage.blobs import blob_path
from decisions.foundation.errors import ArtifactExpired, ArtifactNotFound, Forbidden, InvalidInput
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from tests.support.runs.concurrent_calls import at_once

MakeArtifact = Callable[..., str]
HOUR = 3600


@pytest.fixture(autouse=True)
def storage(principal: Principal) -> Path:
    """Return the empty storage folder of the artifacts; other tests' files are not collected
    here."""
    folder = Path(settings.CONTINUITY_HOME) / "artifacts"
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def file_of(artifact_id: str) -> Path:
    row = Artifact.objects.get(id=artifact_id)
    return Path(settings.CONTINUITY_HOME) / "artifacts" / blob_path(row.sha256)


def age(path: Path, seconds: float) -> None:
    past = time.time() - seconds
    os.utime(path, (past, past))


def expire(artifact_id: str) -> None:
    past = datetime.now(UTC) - timedelta(seconds=1)
    Artifact.objects.filter(id=artifact_id).update(expires_at=past)
    assert expire_artifacts() == 1


def read_all(principal: Principal, artifact_id: str, limit: int) -> tuple[str, int]:
    """Read chunk by chunk as a client does; return the data and the number of chunks."""
    data, offset, chunks, complete = "", 0, 0, False
    while not complete:
        chunk = read_chunk(principal=principal, artifact_id=artifact_id, offset=offset, limit=limit)
        assert chunk["offset"] == offset
        assert chunk["length"] > 0 or chunk["totalSize"] == 0, "a reader has to move on"
        data += chunk["data"]
        offset, complete, chunks = offset + chunk["length"], chunk["complete"], chunks + 1
    assert offset == chunk["totalSize"]
    return data, chunks


@pytest.mark.parametrize(
    ("offset", "limit", "length"),
    [
        (0, CHUNK_MAX, 1000),
        (1000, CHUNK_MAX, 0),
        (999, CHUNK_MAX, 1),
        (0, 1, 1),
        (0, 999, 999),
        (0, 1000, 1000),
        (998, 1, 1),
    ],
)
def test_chunks_count_raw_bytes_up_to_the_end(
    principal: Principal, make_artifact: MakeArtifact, offset: int, limit: int, length: int
) -> None:
    artifact_id = make_artifact(b"a" * 1000)
    chunk = read_chunk(principal=principal, artifact_id=artifact_id, offset=offset, limit=limit)
    assert chunk == {
        "artifactId": artifact_id,
        "mimeType": "text/plain",
        "totalSize": 1000,
        "offset": offset,
        "length": length,
        "data": "a" * length,
        "complete": offset + length == 1000,
    }


def test_an_empty_artifact_is_complete_at_once(
    principal: Principal, make_artifact: MakeArtifact
) -> None:
    chunk = read_chunk(principal=principal, artifact_id=make_artifact(b""))
    assert (chunk["length"], chunk["data"], chunk["complete"]) == (0, "", True)


@pytest.mark.parametrize("offset", [1001, 2**53 - 1])
def test_an_offset_beyond_the_end_is_rejected(
    principal: Principal, make_artifact: MakeArtifact, offset: int
) -> None:
    with pytest.raises(InvalidInput):
        read_chunk(principal=principal, artifact_id=make_artifact(b"a" * 1000), offset=offset)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 7, 64])
def test_text_is_read_in_whole_characters_at_any_limit(
    principal: Principal, make_artifact: MakeArtifact, limit: int
) -> None:
    text = "a é 漢字 😀 \u200d end " * 5
    artifact_id = make_artifact(text.encode())
    data, chunks = read_all(principal, artifact_id, limit)
    assert data == text
    assert chunks >= len(text.encode()) // (limit + 3)


def test_an_offset_inside_a_character_is_rejected(
    principal: Principal, make_artifact: MakeArtifact
) -> None:
    artifact_id = make_artifact("漢".encode())
    for offset in (1, 2):
        with pytest.raises(InvalidInput):
            read_chunk(principal=principal, artifact_id=artifact_id, offset=offset)


@pytest.mark.parametrize(
    "raw",
    [
        b"\x80\x81",
        b"caf\xe9 au lait",
        b"\xf0\x9f\x98",
        b"a" + b"\x80" * 500,
        b"\xff" * 40,
        "漢".encode() * 9 + b"\xe6\xbc",
    ],
)
@pytest.mark.parametrize("limit", [1, 3, 50])
def test_text_that_is_not_utf8_can_still_be_read_to_its_end(
    principal: Principal, make_artifact: MakeArtifact, raw: bytes, limit: int
) -> None:
    data, _ = read_all(principal, make_artifact(raw), limit)
    assert "\ufffd" in data


def test_any_bytes_at_any_limit_can_be_read_to_the_end(
    principal: Principal, make_artifact: MakeArtifact
) -> None:
    rng = random.Random(7)
    alphabet = [b"a", b"\x80", b"\xc3", b"\xe6", b"\xf0", "é".encode(), "漢".encode(), b"\xff"]
    for _ in range(25):
        raw = b"".join(rng.choices(alphabet, k=rng.randrange(1, 40)))
        read_all(principal, make_artifact(raw), rng.randrange(1, 9))


def test_bytes_that_are_not_text_are_read_as_base64(
    principal: Principal, make_artifact: MakeArtifact
) -> None:
    artifact_id = make_artifact(bytes(range(256)), mime_type="image/png")
    chunk = read_chunk(principal=principal, artifact_id=artifact_id, offset=3, limit=10)
    assert (base64.b64decode(chunk["data"]), chunk["length"]) == (bytes(range(3, 13)), 10)


def test_the_same_bytes_are_stored_once(principal: Principal, make_artifact: MakeArtifact) -> None:
    first, second = (make_artifact(b"the same") for _ in range(2))
    assert first != second
    assert file_of(first) == file_of(second)
    assert file_of(first).read_bytes() == b"the same"


def test_concurrent_writes_of_the_same_bytes_do_no_harm(principal: Principal) -> None:
    data = os.urandom(200_000)
    stored = at_once([partial(store_blob, data, name="n", mime_type="a/b")] * 8)
    folder = Path(settings.CONTINUITY_HOME) / "artifacts" / blob_path(stored[0].sha256)
    assert folder.read_bytes() == data
    assert [path.name for path in folder.parent.iterdir()] == [stored[0].sha256]


@pytest.mark.parametrize("name", ["a\0b", "half \ud800", "x" * 400])
def test_any_name_can_be_stored(
    principal: Principal, make_artifact: MakeArtifact, name: str
) -> None:
    artifact_id = make_artifact(b"data", name=name)
    assert len(Artifact.objects.get(id=artifact_id).name) <= 255


def test_an_expired_artifact_is_a_tombstone_and_another_with_its_bytes_remains(
    principal: Principal, make_artifact: MakeArtifact
) -> None:
    expired, other = (make_artifact(b"shared bytes") for _ in range(2))
    expire(expired)
    with pytest.raises(ArtifactExpired):
        read_chunk(principal=principal, artifact_id=expired)
    age(file_of(other), 2 * HOUR)
    assert collect_blobs() == 0
    assert read_chunk(principal=principal, artifact_id=other)["data"] == "shared bytes"
    assert AuditEntry.objects.get(action="artifact.expired").resource_id == expired
    assert AuditEntry.objects.get(action="artifact.expired").metadata["sizeBytes"] == 12


def test_two_concurrent_expiries_write_one_tombstone_and_one_audit_row(
    principal: Principal, make_artifact: MakeArtifact
) -> None:
    artifact_id = make_artifact(b"x")
    Artifact.objects.filter(id=artifact_id).update(expires_at=datetime.now(UTC))
    assert sum(at_once([expire_artifacts] * 4)) == 1
    assert AuditEntry.objects.filter(action="artifact.expired").count() == 1


def test_an_artifact_of_an_active_run_does_not_expire(
    principal: Principal, make_artifact: MakeArtifact
) -> None:
    make_artifact(b"x")
    assert expire_artifacts() == 0


def test_old_bytes_without_a_reference_are_deleted_and_young_ones_remain(
    principal: Principal, make_artifact: MakeArtifact
) -> None:
    old, young = make_artifact(b"old"), make_artifact(b"young")
    expire(old)
    expire(young)
    age(file_of(old), 2 * HOUR)
    assert collect_blobs() == 1
    assert not file_of(old).exists()
    assert file_of(young).exists()


def test_a_draft_of_a_crashed_writer_is_deleted_too(
    principal: Principal, make_artifact: MakeArtifact
) -> None:
    draft = file_of(make_artifact(b"x")).parent / ".draft-abc"
    draft.write_bytes(b"half")
    assert collect_blobs() == 0
    age(draft, 2 * HOUR)
    assert collect_blobs() == 1
    assert not draft.exists()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_writer_that_arrives_while_the_collector_decides_keeps_its_bytes(
    principal: Principal, make_artifact: MakeArtifact, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The collector has found the blob old and without a reference; then a writer stores the same
    bytes."""
    expired = make_artifact(b"wanted again")
    expire(expired)
    age(file_of(expired), 2 * HOUR)
    new_ids: list[str] = []
    original = blobs.delete_file

    def delete(path: str) -> bool:
        if moment == "before":
            new_ids.append(make_artifact(b"wanted again"))
        answer = original(path)
        if moment == "after":
            new_ids.append(make_artifact(b"wanted again"))
        return answer

    monkeypatch.setattr(expiry, "delete_file", delete)
    collect_blobs()
    assert read_chunk(principal=principal, artifact_id=new_ids[0])["data"] == "wanted again"
    leftovers = [path.name for path in file_of(expired).parent.iterdir()]
    assert leftovers == [file_of(expired).name]


def test_concurrent_writers_and_collectors_lose_nothing(
    principal: Principal, make_artifact: MakeArtifact
) -> None:
    for number in range(15):
        data = f"round {number}".encode()
        expired = make_artifact(data)
        expire(expired)
        age(file_of(expired), 2 * HOUR)
        store = partial(make_artifact, data)
        stored = at_once([store, collect_blobs, store])
        for artifact_id in (stored[0], stored[2]):
            chunk = read_chunk(principal=principal, artifact_id=artifact_id)
            assert chunk["data"] == data.decode()


def test_storing_bytes_again_repairs_a_truncated_blob(
    principal: Principal, make_artifact: MakeArtifact
) -> None:
    artifact_id = make_artifact(b"x" * 100)
    file_of(artifact_id).write_bytes(b"x" * 50)
    make_artifact(b"x" * 100)
    assert read_chunk(principal=principal, artifact_id=artifact_id)["data"] == "x" * 100


@pytest.mark.parametrize("damage", ["lost", "cut short", "grown"])
def test_bytes_that_are_lost_or_damaged_read_as_not_found_and_are_logged(
    principal: Principal, make_artifact: MakeArtifact, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    artifact_id = make_artifact(b"x" * 100)
    path = file_of(artifact_id)
    if damage == "lost":
        path.unlink()
    else:
        path.write_bytes(b"x" * (50 if damage == "cut short" else 150))
    with pytest.raises(ArtifactNotFound) as raised:
        read_chunk(principal=principal, artifact_id=artifact_id)
    assert str(path) not in str(raised.value.as_dict())
    assert any(record.levelname == "ERROR" for record in caplog.records)


def test_a_missing_storage_reads_as_not_found_and_rejects_writes(
    principal: Principal, make_artifact: MakeArtifact, storage: Path
) -> None:
    artifact_id = make_artifact(b"x")
    root = storage
    aside = root.rename(root.with_name("aside"))
    root.write_text("not a folder")
    try:
        with pytest.raises(ArtifactNotFound):
            read_chunk(principal=principal, artifact_id=artifact_id)
        with pytest.raises(OSError, match=r"Not a directory|File exists"):
            store_blob(b"y", name="n", mime_type="a/b")
        assert collect_blobs() == 0
    finally:
        root.unlink()
        aside.rename(root)


def test_a_write_that_fails_leaves_no_draft(
    principal: Principal, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disk_full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(OSError, match="space"):
        store_blob(os.urandom(10), name="n", mime_type="a/b")
    assert [path for path in storage.rglob("*") if path.is_file()] == []


def test_a_foreign_artifact_reads_as_missing(
    principal: Principal, outsider: Principal, make_artifact: MakeArtifact
) -> None:
    artifact_id = make_artifact(b"x")
    with pytest.raises(ArtifactNotFound):
        read_chunk(principal=outsider, artifact_id=artifact_id)
    run_id = Artifact.objects.get().run_id
    assert list_run_artifacts(principal=outsider, run_id=run_id) == {"artifacts": []}
    assert artifact_briefs_of(principal=outsider, run_ids=[run_id]) == []


def test_without_the_scope_nothing_is_read(
    principal: Principal, make_artifact: MakeArtifact
) -> None:
    workspace = principal.tenant_id, principal.workspace_id
    with pytest.raises(Forbidden):
        read_chunk(
            principal=Principal("t", *workspace, frozenset(), "local"),
            artifact_id=make_artifact(b"x"),
        )


def test_the_whole_result_is_listed_first(
    principal: Principal, make_artifact: MakeArtifact
) -> None:
    page = make_artifact(b"page", run_id="run_1")
    result = make_artifact(b"whole", run_id="run_1", kind="result")
    assert artifact_ids_of(["run_1"]) == {"run_1": [result, page]}


def test_the_briefs_of_runs_load_no_more_than_they_return(
    make_artifact: Callable[..., str], principal: Principal
) -> None:
    first = [make_artifact(b"x", run_id="run_a") for _ in range(9)]
    result = make_artifact(b"{}", run_id="run_a", kind="result")
    other = make_artifact(b"y", run_id="run_b")
    loaded: list[object] = []
    on_init: Any = lambda **signal: loaded.append(signal["instance"])  # noqa: E731
    post_init.connect(on_init, sender=Artifact)
    try:
        briefs = artifact_briefs_of(principal=principal, run_ids=["run_b", "run_a", "run_c"])
    finally:
        post_init.disconnect(on_init, sender=Artifact)
    assert [each["artifactId"] for each in briefs] == [other, result, *first[:2]]
    assert len(loaded) == 4


def test_a_step_reads_only_artifacts_of_its_own_run(make_artifact: MakeArtifact) -> None:
    artifact_id = make_artifact(b"x", run_id="run_1")
    assert read_chunk_of_run(run_id="run_1", artifact_id=artifact_id)["data"] == "x"
    with pytest.raises(ArtifactNotFound):
        read_chunk_of_run(run_id="run_2", artifact_id=artifact_id)
