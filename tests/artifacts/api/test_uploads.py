"""Uploads: an announced upload becomes an artifact, and nothing else does."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.core.files.base import ContentFile
from django.test import override_settings

from artifacts import uploads
from artifacts.expiry import collect_blobs
from artifacts.models import Artifact, ArtifactUpload
from artifacts.storage import blobs
from artifacts.storage.staging import create_ticket, staging_name
from artifacts.uploads import delete_old_uploads
from decisions.authorization.decision_pages import as_text, decision_page
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.models import AuditEntry, Decision
from tests.support.rest.rest import json_of, refusal
from tests.support.rest.s3_bucket import SECRET, Bucket
from tests.support.runs.concurrent_calls import at_once

UPLOADS = "/api/v1/artifacts/uploads"
DATA = b"id,street\n1,Way\n"


@pytest.fixture(params=["files", "s3"])
def storage(request: pytest.FixtureRequest) -> str:
    """Run the test with both storages."""
    if request.param == "s3":
        request.getfixturevalue("bucket")
    else:  # do not collect the files of other tests
        shutil.rmtree(Path(settings.CONTINUITY_HOME) / "artifacts", ignore_errors=True)
    return str(request.param)


def announcement(data: bytes = DATA, **other: Any) -> dict[str, Any]:
    sha256 = hashlib.sha256(data).hexdigest()
    fields = {"name": "a.csv", "mimeType": "text/csv", "sizeBytes": len(data), "sha256": sha256}
    return {**fields, **other}


def start(api: httpx.Client, data: bytes = DATA, **other: Any) -> dict[str, Any]:
    return json_of(api.post(UPLOADS, json=announcement(data, **other)), 201)


def send(upload: dict[str, Any], data: bytes = DATA) -> httpx.Response:
    headers = {**upload["headers"], "Content-Length": str(len(data))}
    return httpx.put(upload["url"], content=data, headers=headers, timeout=60)


def complete(api: httpx.Client, upload: dict[str, Any]) -> httpx.Response:
    return api.post(f"{UPLOADS}/{upload['uploadId']}/complete", json={})


def test_an_announced_and_sent_upload_becomes_an_artifact(api: httpx.Client, storage: str) -> None:
    upload = start(api)
    assert set(upload) == {"uploadId", "method", "url", "headers", "expiresAt"}
    assert send(upload).is_success
    artifact = json_of(complete(api, upload))
    assert (artifact["name"], artifact["mimeType"], artifact["runId"]) == ("a.csv", "text/csv", "")
    assert json_of(api.get(f"/api/v1/artifacts/{artifact['artifactId']}"))["data"] == DATA.decode()
    assert json_of(complete(api, upload)) == artifact
    entries = list(AuditEntry.objects.order_by("id").filter(resource_id=upload["uploadId"]))
    assert [entry.action for entry in entries] == ["artifact.upload_started", "artifact.uploaded"]
    assert not blob_exists(staging_name(upload["uploadId"]))


def blob_exists(name: str) -> bool:
    try:
        blobs.blob_storage().open(name).close()
    except FileNotFoundError:
        return False
    return True


def test_a_size_sent_as_a_float_is_accepted(api: httpx.Client) -> None:
    upload = start(api, sizeBytes=float(len(DATA)))
    assert upload["headers"]["Content-Length"] == str(len(DATA))
    assert send(upload).status_code == 204
    assert json_of(complete(api, upload))["sizeBytes"] == len(DATA)


def test_an_upload_uses_the_address_of_the_request(api: httpx.Client) -> None:
    assert start(api)["url"].startswith(str(api.base_url.join("/api/v1/artifacts/upload/upl_")))
    with override_settings(PUBLIC_URL="https://continuity.example"):
        url = start(api)["url"]
    assert url.startswith("https://continuity.example/api/v1/artifacts/upload/upl_")


def test_an_incomplete_upload_is_not_an_artifact(api: httpx.Client, storage: str) -> None:
    upload = start(api)
    assert refusal(complete(api, upload), 409)["retryable"]
    send(upload)
    assert not Artifact.objects.exists()


@pytest.mark.parametrize("sent", [b"other bytes 16!!", DATA + b"x", DATA[:-1]])
def test_bytes_that_differ_from_the_announcement_are_refused_and_can_be_resent(
    api: httpx.Client, storage: str, sent: bytes
) -> None:
    upload = start(api)
    send(upload, sent)
    assert complete(api, upload).status_code in (400, 409)
    assert not Artifact.objects.exists()
    assert send(upload).is_success
    assert complete(api, upload).status_code == 200


@pytest.mark.parametrize("sent", [DATA + b"x", DATA[:-1], b""])
def test_the_upload_route_accepts_no_other_length_and_stores_nothing_of_it(
    api: httpx.Client, sent: bytes
) -> None:
    upload = start(api)
    assert refusal(send(upload, sent), 400)["errorCode"] == "INVALID_PARAMETER"
    assert not blob_exists(staging_name(upload["uploadId"]))
    assert refusal(complete(api, upload), 409)


def test_the_upload_route_accepts_no_other_content_type(api: httpx.Client) -> None:
    upload = start(api)
    assert refusal(send(upload | {"headers": {"Content-Type": "text/html"}}), 400)


def test_the_ticket_of_an_upload_raises_the_body_limit(
    api: httpx.Client,
) -> None:
    data = os.urandom(9 << 20)
    upload = start(api, data)
    assert send(upload, data).status_code == 204
    assert json_of(complete(api, upload))["sizeBytes"] == len(data)
    forged = upload | {"url": upload["url"][:-1] + ("0" if upload["url"][-1] != "0" else "1")}
    assert refusal(send(forged, data), 413)
    assert refusal(send(upload, data + data), 413)


@pytest.mark.parametrize("change", ["proof", "size", "expiry", "nothing", "too late"])
def test_an_altered_or_expired_ticket_is_refused(api: httpx.Client, change: str) -> None:
    upload = start(api)
    row = ArtifactUpload.objects.get()
    parts = create_ticket(row).split(".")
    if change == "too late":
        row.expires_at = datetime.now(UTC) - timedelta(seconds=1)
        parts = create_ticket(row).split(".")
    elif change == "nothing":
        parts = []
    else:
        parts[{"proof": 3, "size": 1, "expiry": 2}[change]] += "0"
    ticket = ".".join(parts)
    url = upload["url"].rsplit("/", 1)[0] + "/" + ticket
    assert refusal(send(upload | {"url": url}), 404)["errorCode"] == "ARTIFACT_NOT_FOUND"


def test_a_completed_upload_accepts_no_more_bytes(api: httpx.Client) -> None:
    upload = start(api)
    send(upload)
    complete(api, upload)
    assert refusal(send(upload), 409)


@pytest.mark.slow
def test_concurrent_completions_return_the_same_artifact(api: httpx.Client, storage: str) -> None:
    upload = start(api)
    send(upload)
    answers = at_once([partial(complete, api, upload)] * 4)
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["artifactId"] for answer in answers}) == 1
    assert Artifact.objects.count() == 1


def test_an_upload_of_another_workspace_is_not_found(
    api: httpx.Client, client_with: Callable[..., httpx.Client]
) -> None:
    upload = start(api)
    foreign = client_with(workspace="elsewhere")
    assert refusal(complete(foreign, upload), 404)["errorCode"] == "ARTIFACT_NOT_FOUND"


def test_a_workspace_has_a_limit_of_open_uploads(
    api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("artifacts.uploads.OPEN_MAX", 2)
    first = start(api)
    start(api)
    assert refusal(api.post(UPLOADS, json=announcement()), 409)["retryable"]
    send(first)
    complete(api, first)
    start(api)


@override_settings(UPLOAD_MAX_BYTES=1000)
@pytest.mark.parametrize(
    "wrong",
    [
        {"sizeBytes": 1001},
        {"sizeBytes": 0},
        {"sizeBytes": True},
        {"sha256": "A" * 64},
        {"sha256": "0" * 63},
        {"mimeType": "text"},
        {"mimeType": "text/html\r\nX: y"},
        {"name": ""},
        {"name": "n" * 256},
        {"extra": 1},
        {"sizeBytes": 1.5},
    ],
    ids=str,
)
def test_an_invalid_announcement_is_refused(api: httpx.Client, wrong: dict[str, Any]) -> None:
    answer = refusal(api.post(UPLOADS, json=announcement(**wrong)), 400)
    assert answer["errorCode"] == "INVALID_PARAMETER"
    assert not ArtifactUpload.objects.exists()


def test_an_abandoned_upload_is_deleted_with_its_bytes_and_an_active_one_is_not(
    api: httpx.Client, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    abandoned, active = start(api), start(api)
    for upload in (abandoned, active):
        send(upload)
    monkeypatch.setattr(blobs, "GRACE_PERIOD", timedelta(seconds=-5))  # an hour later
    ArtifactUpload.objects.filter(id=abandoned["uploadId"]).update(
        expires_at=datetime.now(UTC) - timedelta(hours=1)
    )
    assert refusal(complete(api, abandoned), 410)["errorCode"] == "ARTIFACT_EXPIRED"
    assert (delete_old_uploads(), collect_blobs()) == (1, 0)
    assert not blob_exists(staging_name(abandoned["uploadId"]))
    assert complete(api, active).status_code == 200
    assert collect_blobs() == 0


def test_bytes_sent_for_a_deleted_upload_are_collected(
    api: httpx.Client, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = start(api)
    ArtifactUpload.objects.all().delete()
    assert send(upload).is_success  # S3 does not know the rows of the database
    monkeypatch.setattr(blobs, "GRACE_PERIOD", timedelta(seconds=-5))
    assert collect_blobs() == 1
    assert bucket.keys() == []


def test_a_presigned_url_binds_size_type_and_hash_and_contains_no_key(
    api: httpx.Client, bucket: Bucket
) -> None:
    upload = start(api)
    url = httpx.URL(upload["url"])
    signed = set(url.params["X-Amz-SignedHeaders"].split(";"))
    assert {"content-length", "content-type", "x-amz-checksum-sha256"} <= signed
    assert upload["headers"].keys() == {"Content-Type", "Content-Length", "x-amz-checksum-sha256"}
    assert url.params["X-Amz-Expires"] == "3600"
    assert SECRET not in str(upload)
    assert "X-Amz-Signature" not in str(list(AuditEntry.objects.values_list("metadata")))


def test_bytes_that_change_during_completion_do_not_become_the_artifact(
    api: httpx.Client, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = start(api)
    send(upload)
    promote_upload = bucket.storage.promote_upload

    def promote(*args: Any, **kwargs: Any) -> None:
        name = staging_name(upload["uploadId"])
        bucket.storage._save(name, ContentFile(b"poison: 16 bytes"))  # a server may ignore digests
        promote_upload(*args, **kwargs)

    monkeypatch.setattr(bucket.storage, "promote_upload", promote)
    artifact = json_of(complete(api, upload))
    assert json_of(api.get(f"/api/v1/artifacts/{artifact['artifactId']}"))["data"] == DATA.decode()
    assert len(bucket.keys()) == 1


@override_settings(ARTIFACT_REDIRECT_BYTES=1000)
def test_a_large_download_is_redirected_to_the_bucket_as_an_attachment(
    api: httpx.Client, bucket: Bucket, make_artifact: Callable[..., str]
) -> None:
    small, large = (
        f"/api/v1/artifacts/{make_artifact(data, mime_type='text/html', name='p.html')}/content"
        for data in (b"x" * 999, b"<script>" * 200)
    )
    assert api.get(small).status_code == 200
    answer = api.get(large)
    assert (answer.status_code, answer.headers["cache-control"]) == (307, "no-store")
    params = httpx.URL(answer.headers["location"]).params
    assert params["response-content-type"] == "application/octet-stream"
    assert params["response-content-disposition"] == 'attachment; filename="p.html"'
    assert params["X-Amz-Expires"] == "60"
    downloaded = httpx.get(answer.headers["location"])
    assert downloaded.content == b"<script>" * 200
    assert downloaded.headers["content-type"] == "application/octet-stream"
    assert api.head(large).status_code == 200


@override_settings(ARTIFACT_REDIRECT_BYTES=1000)
def test_downloads_from_file_storage_are_not_redirected(
    api: httpx.Client, make_artifact: Callable[..., str]
) -> None:
    path = f"/api/v1/artifacts/{make_artifact(b'x' * 5000)}/content"
    assert api.get(path).status_code == 200


@pytest.mark.parametrize("hashed", [DATA, b""], ids=["their hash", "hash of nothing"])
def test_bytes_of_another_size_do_not_become_an_artifact(api: httpx.Client, hashed: bytes) -> None:
    upload = start(api, hashed, sizeBytes=5)
    blobs.blob_storage().save(staging_name(upload["uploadId"]), ContentFile(DATA))
    assert refusal(complete(api, upload), 400)["details"]["sizeBytes"] == len(DATA)
    assert not Artifact.objects.exists()


def test_completions_that_verify_at_the_same_time_create_one_artifact(
    api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = start(api)
    send(upload)
    verify, both_verified = uploads._verify_and_promote, threading.Barrier(2)

    def verify_together(row: ArtifactUpload) -> None:
        verify(row)
        both_verified.wait(20)

    monkeypatch.setattr(uploads, "_verify_and_promote", verify_together)
    responses = at_once([partial(complete, api, upload)] * 2)
    assert len({json_of(response)["artifactId"] for response in responses}) == 1
    assert Artifact.objects.count() == 1


def test_who_decides_on_a_completion_sees_the_upload(api: httpx.Client) -> None:
    upload = start(api)
    create_rule(RuleFields("confirm", tool="complete_artifact_upload", reason="r"), actor="test")
    assert complete(api, upload).status_code == 202
    decision = Decision.objects.get()
    text = as_text(decision_page(decision))
    sha256, size = announcement()["sha256"], f"{len(DATA)} bytes"
    for part in ("name: a.csv", sha256, f"size: {size}", "media type: text/csv", "token test"):
        assert part in text
    ArtifactUpload.objects.all().delete()
    assert "has changed" in decision_page(decision).change
