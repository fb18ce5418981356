"""The signed addresses by which a paired browser exchanges bytes with the server."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from artifacts import browser_files
from artifacts.browser_files import MAX_BYTES, open_result_upload, share_file, take_result
from artifacts.models import Artifact
from artifacts.storage.staging import UPLOAD_PATH, create_result_ticket
from decisions.foundation.errors import ArtifactNotFound, InvalidInput

DATA = b"a picture"
SHA256 = hashlib.sha256(DATA).hexdigest()


def test_a_result_that_was_sent_is_taken_once(anonymous: httpx.Client) -> None:
    upload = open_result_upload()
    sent = anonymous.put(upload.url, content=DATA, headers={"Content-Type": "image/jpeg"})
    assert sent.status_code == 204
    assert take_result(upload, size_bytes=len(DATA), sha256=SHA256) == DATA
    with pytest.raises(ArtifactNotFound):
        take_result(upload, size_bytes=len(DATA), sha256=SHA256)
    assert not Artifact.objects.exists()


@pytest.mark.parametrize(("size", "digest"), [(8, SHA256), (9, "0" * 64)])
def test_a_result_is_deleted_if_it_is_not_as_named(
    anonymous: httpx.Client, size: int, digest: str
) -> None:
    upload = open_result_upload()
    anonymous.put(upload.url, content=DATA)
    with pytest.raises(InvalidInput):
        take_result(upload, size_bytes=size, sha256=digest)
    with pytest.raises(ArtifactNotFound):
        take_result(upload, size_bytes=len(DATA), sha256=SHA256)


@pytest.mark.parametrize(
    ("limit", "minutes", "altered", "status"),
    [(9, 1, "", 204), (8, 1, "", 400), (9, -1, "", 404), (9, 1, "0", 404)],
    ids=["fits", "too large", "expired", "altered"],
)
def test_a_result_is_sent_only_with_a_valid_ticket(
    anonymous: httpx.Client, limit: int, minutes: int, altered: str, status: int
) -> None:
    expires_at = datetime.now(UTC) + timedelta(minutes=minutes)
    ticket = create_result_ticket("res_1", limit, expires_at)
    answer = anonymous.put(UPLOAD_PATH + ticket + altered, content=DATA)
    assert answer.status_code == status


def test_an_upload_of_a_result_is_limited_in_size_and_time() -> None:
    upload = open_result_upload()
    left = upload.expires_at - datetime.now(UTC)
    assert upload.as_dict()["maxBytes"] == MAX_BYTES == 25 * 1024 * 1024
    assert timedelta(minutes=14) < left <= timedelta(minutes=15)


def test_a_shared_file_is_read_by_its_address(anonymous: httpx.Client) -> None:
    answer = anonymous.get(share_file(DATA))
    assert (answer.status_code, answer.content) == (200, DATA)
    assert answer.headers["Content-Disposition"] == "attachment"
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_shared_file_needs_its_signature_and_expires(
    anonymous: httpx.Client, monkeypatch: Any
) -> None:
    url = share_file(DATA)
    claims, _, proof = url.rpartition(".")
    flipped = "0" if proof[-1] != "0" else "1"
    assert anonymous.get(f"{claims}.{proof[:-1]}{flipped}").status_code == 404
    assert anonymous.get(url.replace(SHA256, "0" * 64)).status_code == 404
    monkeypatch.setattr(browser_files, "TIME_TO_SEND", timedelta(minutes=-1))
    assert anonymous.get(share_file(DATA)).status_code == 404
