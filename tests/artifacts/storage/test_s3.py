"""Artifacts in a bucket: stored once, read in ranges, collected only when unreferenced."""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import override_settings

from artifacts.chunks import read_chunk
from artifacts.expiry import collect_blobs, expire_artifacts
from artifacts.models import Artifact
from artifacts.selectors import open_content
from artifacts.services import store_blob
from artifacts.storage import blobs
from artifacts.storage.blobs import blob_path
from artifacts.storage.s3 import READ_AHEAD_MAX
from config.home import artifact_storage
from decisions.identity.principals import Principal
from runs.models import Run
from runs.operations.health.checks import check_artifacts
from tests.support.rest.rest import refusal
from tests.support.rest.s3_bucket import SECRET, Bucket
from tests.support.runs.concurrent_calls import at_once

MakeArtifact = Callable[..., str]


@pytest.fixture
def no_grace_period(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make everything written until now old enough for the collector."""
    monkeypatch.setattr(blobs, "GRACE_PERIOD", timedelta(seconds=-5))


def expire(artifact_id: str) -> None:
    Artifact.objects.filter(id=artifact_id).update(expires_at=datetime.now(UTC))
    assert expire_artifacts() == 1


def test_bytes_are_uploaded_once_and_found_afterwards(
    bucket: Bucket, principal: Principal, make_artifact: MakeArtifact
) -> None:
    first = make_artifact(b"the same")
    assert bucket.take_operations() == ["HeadObject", "PutObject"]
    make_artifact(b"the same")
    assert bucket.take_operations() == ["HeadObject", "CopyObject"]
    assert bucket.keys() == ["kept/here/" + blob_path(hashlib.sha256(b"the same").hexdigest())]
    assert read_chunk(principal=principal, artifact_id=first)["data"] == "the same"


def test_a_thread_that_stored_bytes_keeps_no_database_connection(
    bucket: Bucket, principal: Principal
) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(store_blob, b"x", name="x", mime_type="text/plain").result(60)
        assert pool.submit(lambda: connection.connection).result(60) is None


def test_a_chunk_fetches_only_its_own_bytes(
    bucket: Bucket, principal: Principal, make_artifact: MakeArtifact
) -> None:
    artifact_id = make_artifact(bytes(range(256)) * 4096, mime_type="image/png")
    bucket.calls.clear()
    chunk = read_chunk(principal=principal, artifact_id=artifact_id, offset=1000, limit=300)
    assert chunk["length"] == 300
    ranges = [params["Range"] for name, params in bucket.calls if name == "GetObject"]
    assert ranges == ["bytes=1000-1299"]


@pytest.mark.slow
def test_sequential_reads_fetch_growing_ranges(
    bucket: Bucket, principal: Principal, make_artifact: MakeArtifact
) -> None:
    data = os.urandom(20 << 20)
    _, file = open_content(principal=principal, artifact_id=make_artifact(data))
    bucket.calls.clear()
    with file:
        read = b"".join(iter(partial(file.read, 256 * 1024), b""))
    assert read == data
    sizes = [
        int(params["Range"].split("-")[1]) - int(params["Range"].split("=")[1].split("-")[0]) + 1
        for _, params in bucket.calls
    ]
    assert len(sizes) <= 7
    assert max(sizes) <= READ_AHEAD_MAX


@pytest.mark.parametrize("position", [0, 5, 3999, 4000, 9000])
def test_any_read_returns_the_same_bytes_as_a_file(
    bucket: Bucket, principal: Principal, make_artifact: MakeArtifact, position: int
) -> None:
    data = os.urandom(4000)
    _, file = open_content(principal=principal, artifact_id=make_artifact(data))
    with file:
        for size in (1, 10, 0, 5000):
            file.seek(position)
            assert file.read(size) == data[position : position + size]
            assert file.read(3) == data[position + size : position + size + 3]
        file.seek(position)
        assert file.read() == data[position:]


@pytest.mark.slow
def test_missing_or_truncated_bytes_are_not_found(
    bucket: Bucket, api: httpx.Client, make_artifact: MakeArtifact
) -> None:
    artifact_id = make_artifact(b"x" * 100)
    bucket.storage.client.put_object(Bucket=bucket.name, Key=bucket.keys()[0], Body=b"x")
    assert refusal(api.get(f"/api/v1/artifacts/{artifact_id}"), 404)
    make_artifact(b"x" * 100)
    assert api.get(f"/api/v1/artifacts/{artifact_id}").status_code == 200
    bucket.storage.delete(bucket.keys()[0].removeprefix("kept/here/"))
    assert refusal(api.get(f"/api/v1/artifacts/{artifact_id}"), 404)


def test_only_old_unreferenced_bytes_are_deleted(
    bucket: Bucket, make_artifact: MakeArtifact, no_grace_period: None
) -> None:
    unshared, shared, unexpired = (make_artifact(data) for data in (b"gone", b"shared", b"shared"))
    expire(unshared)
    expire(shared)
    assert collect_blobs() == 1
    assert bucket.keys() == ["kept/here/" + blob_path(Artifact.objects.get(id=unexpired).sha256)]


def test_recent_bytes_are_not_deleted(bucket: Bucket, make_artifact: MakeArtifact) -> None:
    expire(make_artifact(b"young"))
    assert collect_blobs() == 0
    assert len(bucket.keys()) == 1


def test_a_writer_waits_for_a_collector_and_then_uploads_again(
    bucket: Bucket,
    principal: Principal,
    make_artifact: MakeArtifact,
    no_grace_period: None,
    monkeypatch: pytest.MonkeyPatch,
    in_background: Callable[[Callable[[], object]], threading.Thread],
) -> None:
    """A writer stores the same bytes between the collector's check and its deletion."""
    expire(make_artifact(b"wanted again"))
    delete_blob, artifact_ids = bucket.storage.delete, list[str]()
    is_connected = threading.Event()

    def write() -> None:
        bucket.storage.exists("x")  # the first request of a thread takes long
        is_connected.set()
        artifact_ids.append(make_artifact(b"wanted again"))

    def delete(name: str) -> None:
        writer = in_background(write)
        assert is_connected.wait(20)
        writer.join(1)
        assert not artifact_ids, "the writer did not wait"
        delete_blob(name)

    monkeypatch.setattr(bucket.storage, "delete", delete)
    collect_blobs()
    while not artifact_ids:
        threading.Event().wait(0.05)
    assert read_chunk(principal=principal, artifact_id=artifact_ids[0])["data"] == "wanted again"


@pytest.mark.slow
def test_concurrent_writes_of_the_same_bytes_store_one_object(
    bucket: Bucket, principal: Principal
) -> None:
    at_once([partial(store_blob, b"same", name="n", mime_type="a/b")] * 6)
    assert len(bucket.keys()) == 1


@pytest.mark.slow
def test_an_unavailable_storage_is_reported_without_secrets(
    bucket: Bucket,
    api: httpx.Client,
    make_artifact: MakeArtifact,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    artifact_id = make_artifact(b"x")
    bucket.storage.bucket_name = "no-such-bucket-" + "x" * 10
    with pytest.raises(OSError, match="S3"):
        store_blob(b"y", name="n", mime_type="a/b")
    bucket.storage.client_config.retries = {"max_attempts": 0}
    bucket.storage.endpoint_url = "http://127.0.0.1:9"
    bucket.storage._connections = threading.local()
    answer = refusal(api.get(f"/api/v1/artifacts/{artifact_id}"), 503)
    assert (answer["details"]["causeCode"], answer["retryable"]) == ("STORAGE", True)
    records = [record for record in caplog.records if record.name.split(".")[0] not in SILENCED]
    assert SECRET not in "".join(record.getMessage() + str(record.exc_info) for record in records)


SILENCED = {"boto3", "botocore", "urllib3"}  # the settings suppress their debug levels in every log


def test_libraries_that_log_requests_are_silenced(bucket: Bucket) -> None:
    assert {logging.getLogger(name).getEffectiveLevel() for name in SILENCED} == {logging.WARNING}


def test_a_run_whose_result_cannot_be_stored_fails_with_cause_storage(
    bucket: Bucket, submit: Callable[..., str], execute_run: Callable[[str], Run]
) -> None:
    run_id = submit("ok")
    bucket.storage.bucket_name = "no-such-bucket-" + "x" * 10
    run = execute_run(run_id)
    assert run.error is not None
    assert run.error["errorCode"] == "EXECUTION_ERROR"
    assert run.error["details"]["causeCode"] == "STORAGE"


def test_doctor_writes_reads_and_deletes(bucket: Bucket) -> None:
    assert check_artifacts().verdict == "ok"
    assert {"PutObject", "GetObject", "DeleteObject"} <= set(bucket.take_operations())
    assert bucket.keys() == []


def test_doctor_reports_the_error(bucket: Bucket) -> None:
    bucket.storage.bucket_name = "no-such-bucket-" + "x" * 10
    finding = check_artifacts()
    assert finding.verdict == "bad"
    assert SECRET not in str(finding)


@pytest.mark.parametrize("url", ["s3://key:secret@bucket/x", "s3:///x", "s3://key@bucket", "s3://"])
def test_an_address_with_credentials_or_without_a_bucket_is_refused(
    url: str, settings: Any
) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        artifact_storage(url, settings.CONTINUITY_HOME)
    assert "secret@" not in str(refused.value)


@pytest.mark.slow
def test_boto3_is_not_loaded_before_the_first_artifact() -> None:
    code = (
        "import django, sys; django.setup(); import mcp_server.server, artifacts.services;"
        " print([name for name in sys.modules if name.startswith('boto')])"
    )
    env = {
        **os.environ,
        "CONTINUITY_ARTIFACT_STORAGE": "s3://b/p",
        "DJANGO_SETTINGS_MODULE": "tests.lean_settings",
    }
    result = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


@override_settings(MAX_CONCURRENT_RUNS=1)
def test_a_whole_download_is_read_from_the_bucket(
    bucket: Bucket, api: httpx.Client, make_artifact: MakeArtifact
) -> None:
    data = os.urandom(3_000_000)
    artifact_id = make_artifact(data, mime_type="image/png", name="a.png")
    answer = api.get(f"/api/v1/artifacts/{artifact_id}/content")
    assert answer.content == data
    assert answer.headers["content-disposition"] == 'attachment; filename="a.png"'
    part = api.get(f"/api/v1/artifacts/{artifact_id}/content", headers={"Range": "bytes=10-19"})
    assert part.content == data[10:20]


def test_an_object_that_is_replaced_while_it_is_read_is_an_error(
    bucket: Bucket, principal: Principal, make_artifact: MakeArtifact
) -> None:
    _, file = open_content(principal=principal, artifact_id=make_artifact(b"a" * 4000))
    with file:
        assert file.read(10) == b"a" * 10
        bucket.storage.client.put_object(Bucket=bucket.name, Key=bucket.keys()[0], Body=b"b" * 4000)
        with pytest.raises(OSError, match="S3 read failed: PreconditionFailed"):
            file.read(10)
