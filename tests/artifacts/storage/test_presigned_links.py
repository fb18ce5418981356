"""Presigned links of a bucket whose server verifies signatures: each allows one request only."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from django.test import override_settings

from artifacts.models import Artifact
from artifacts.storage.blobs import blob_path
from artifacts.storage.s3 import BlobS3Storage
from tests.support.audit.secret_search import every_file, every_row
from tests.support.rest.rest import json_of
from tests.support.rest.s3_bucket import KEY_ID, Bucket
from tests.support.rest.s3_signatures import SignatureCheck

UPLOADS = "/api/v1/artifacts/uploads"
DATA = b"id,street\n1,Way\n"
PAGE = b"<script>alert(1)</script>"
Attack = Callable[[str], httpx.Response]


@pytest.fixture
def download(bucket: Bucket, api: httpx.Client, make_artifact: Callable[..., str]) -> str:
    """Return the link to download one artifact of a bucket that has another one."""
    make_artifact(b"another one")
    artifact_id = make_artifact(PAGE, mime_type="text/html", name="p.html")
    with override_settings(ARTIFACT_REDIRECT_BYTES=1):
        answer = api.get(f"/api/v1/artifacts/{artifact_id}/content")
    return str(answer.headers["location"])


@pytest.fixture
def upload(bucket: Bucket, api: httpx.Client) -> dict[str, Any]:
    """Return an announced upload."""
    sha256 = hashlib.sha256(DATA).hexdigest()
    fields = {"name": "a.csv", "mimeType": "text/csv", "sizeBytes": len(DATA), "sha256": sha256}
    return json_of(api.post(UPLOADS, json=fields), 201)


def another_object(link: str) -> str:
    name = blob_path(hashlib.sha256(b"another one").hexdigest())
    return link.replace(blob_path(hashlib.sha256(PAGE).hexdigest()), name)


def changed(link: str, old: str, new: str) -> str:
    assert old in link
    return link.replace(old, new)


DOWNLOAD_ATTACKS: dict[str, Attack] = {
    "another object": lambda link: httpx.get(another_object(link)),
    "another bucket": lambda link: httpx.get(changed(link, "/kept/here", "-other/kept/here")),
    "the list of the bucket": lambda link: httpx.get(
        link.replace(urlsplit(link).path, "/" + urlsplit(link).path.split("/")[1])
    ),
    "type of a page": lambda link: httpx.get(
        changed(link, "application%2Foctet-stream", "text%2Fhtml")
    ),
    "a second type": lambda link: httpx.get(f"{link}&response-content-type=text/html"),
    "shown, not saved": lambda link: httpx.get(changed(link, "attachment", "inline")),
    "no file name": lambda link: httpx.get(
        link.replace("response-content-disposition", "x-ignored")
    ),
    "another header": lambda link: httpx.get(f"{link}&response-content-language=x"),
    "an older version": lambda link: httpx.get(f"{link}&versionId=null"),
    "a longer life": lambda link: httpx.get(
        changed(link, "X-Amz-Expires=60", "X-Amz-Expires=604800")
    ),
    "a later start": lambda link: httpx.get(changed(link, "X-Amz-Date=2", "X-Amz-Date=3")),
    "permissions": lambda link: httpx.get(f"{link}&acl"),
    "HEAD": httpx.head,
    "DELETE": httpx.delete,
    "PUT": lambda link: httpx.put(link, content=b"other"),
    "POST": lambda link: httpx.post(link, content=b"other"),
    "no signature": lambda link: httpx.get(link.partition("?")[0]),
    "another key": lambda link: httpx.get(changed(link, KEY_ID, "other-key-id")),
}


def test_a_download_link_returns_the_object_as_a_file_to_save(download: str) -> None:
    answer = httpx.get(download)
    assert answer.content == PAGE
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == 'attachment; filename="p.html"'


def test_every_change_of_a_download_link_is_refused(download: str, bucket: Bucket) -> None:
    stored = bucket.keys()
    answers = {name: attack(download).status_code for name, attack in DOWNLOAD_ATTACKS.items()}
    assert answers == dict.fromkeys(DOWNLOAD_ATTACKS, 403)
    assert bucket.keys() == stored


@pytest.mark.slow
def test_a_download_link_ends_after_a_minute(
    download: str, s3_server: tuple[str, SignatureCheck], monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_seconds(seconds: float) -> Callable[[], datetime]:
        return lambda: datetime.now(UTC) + timedelta(seconds=seconds)

    monkeypatch.setattr(s3_server[1], "now", in_seconds(30))
    assert httpx.get(download).status_code == 200
    monkeypatch.setattr(s3_server[1], "now", in_seconds(61))
    assert httpx.get(download).status_code == 403


def put(upload: dict[str, Any], data: bytes = DATA, **headers: str | None) -> int:
    given = {**upload["headers"], **{name.replace("_", "-"): headers[name] for name in headers}}
    sent = {name: value for name, value in given.items() if value is not None}
    return httpx.put(upload["url"], content=data, headers=sent).status_code


def test_an_upload_link_accepts_the_announced_bytes(upload: dict[str, Any]) -> None:
    assert put(upload) == 200


UPLOAD_ATTACKS: list[tuple[bytes, dict[str, str | None], int]] = [
    (b"ID,street\n1,Way\n", {}, 400),
    (DATA + b"2,Way\n", {"Content_Length": "22"}, 403),
    (DATA, {"Content_Type": "text/html"}, 403),
    (DATA, {"x_amz_checksum_sha256": None}, 403),
    (DATA, {"x_amz_acl": "public-read"}, 403),
    (DATA, {"x_amz_copy_source": "/any/object"}, 403),
    (DATA, {"x_amz_meta_a": "b"}, 403),
    (DATA, {"x_amz_website_redirect_location": "https://elsewhere.example/"}, 403),
]


def test_an_upload_link_accepts_no_other_bytes_and_no_other_headers(
    upload: dict[str, Any], bucket: Bucket
) -> None:
    for data, headers, status in UPLOAD_ATTACKS:
        assert put(upload, data, **headers) == status, headers
    assert bucket.keys() == []


def test_an_upload_link_writes_only_its_own_name_and_reads_nothing(
    upload: dict[str, Any], bucket: Bucket
) -> None:
    link, headers = upload["url"], upload["headers"]
    assert put(upload) == 200
    stored = bucket.keys()
    other_name = changed(link, "/uploads/", "/uploads/../")
    for name in (other_name, changed(link, upload["uploadId"], "upl_other")):
        assert httpx.put(name, content=DATA, headers=headers).status_code == 403
    for method in ("GET", "HEAD", "DELETE", "POST"):
        assert httpx.request(method, link, headers=headers, content=DATA).status_code == 403
    assert bucket.keys() == stored


def test_an_upload_link_that_is_used_after_the_completion_changes_no_artifact(
    upload: dict[str, Any], bucket: Bucket, api: httpx.Client
) -> None:
    assert put(upload) == 200
    artifact = json_of(api.post(f"{UPLOADS}/{upload['uploadId']}/complete", json={}))
    assert put(upload) == 200
    again = json_of(api.post(f"{UPLOADS}/{upload['uploadId']}/complete", json={}))
    assert again == artifact
    assert Artifact.objects.count() == 1


def test_links_are_stored_nowhere_and_logged_nowhere(
    upload: dict[str, Any], download: str, api: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    put(upload)
    json_of(api.post(f"{UPLOADS}/{upload['uploadId']}/complete", json={}))
    links = (upload["url"], download)
    for signature in (parse_qs(urlsplit(link).query)["X-Amz-Signature"][0] for link in links):
        assert signature not in every_row()
        assert signature.encode() not in every_file()
        product = [one for one in caplog.records if one.name.split(".")[0] != "httpx"]
        assert signature not in "".join(one.getMessage() for one in product)


def test_links_of_a_public_address_are_signed_by_one_client(bucket: Bucket) -> None:
    storage = BlobS3Storage(public_endpoint="https://files.example", bucket_name=bucket.name)
    with (
        patch.object(storage, "_create_session", wraps=storage._create_session) as created,
        ThreadPoolExecutor(2) as pool,
    ):
        sign = partial(storage.presign_get, disposition="inline", expires_s=60)
        links = list(pool.map(sign, ["a", "b", "c"]))
    assert all(urlsplit(link).netloc.endswith("files.example") for link in links)
    assert created.call_count == 1
