"""Artifacts over REST: chunks, and whole downloads with ranges and validators."""

from __future__ import annotations

import base64
import hashlib
import os
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from artifacts.api import downloads
from artifacts.models import Artifact
from tests.support.rest.rest import json_of, refusal
from tests.support.runs.waiting import eventually

BYTES = bytes(range(256)) * 40


def content(artifact_id: str) -> str:
    return f"/api/v1/artifacts/{artifact_id}/content"


def test_text_is_returned_as_text_and_other_content_as_base64(
    api: httpx.Client, make_artifact: Callable[..., str]
) -> None:
    text = json_of(api.get(f"/api/v1/artifacts/{make_artifact('héé'.encode())}?limit=2"))
    assert (text["data"], text["length"], text["complete"]) == ("h", 1, False)
    image = make_artifact(BYTES, mime_type="image/png")
    chunk = json_of(api.get(f"/api/v1/artifacts/{image}", params={"offset": 10, "limit": 5}))
    assert base64.b64decode(chunk["data"]) == BYTES[10:15]
    assert (chunk["totalSize"], chunk["offset"], chunk["length"]) == (len(BYTES), 10, 5)


def test_an_offset_at_the_end_is_empty_and_one_past_it_is_refused(
    api: httpx.Client, make_artifact: Callable[..., str]
) -> None:
    artifact_id = make_artifact(b"abc")
    end = json_of(api.get(f"/api/v1/artifacts/{artifact_id}?offset=3"))
    assert (end["data"], end["length"], end["complete"]) == ("", 0, True)
    refused = refusal(api.get(f"/api/v1/artifacts/{artifact_id}?offset=4"), 400)
    assert refused["details"] == {"totalSize": 3}


def test_a_download_has_the_stored_bytes_and_their_hash_as_etag(
    api: httpx.Client, make_artifact: Callable[..., str]
) -> None:
    response = api.get(content(make_artifact(BYTES, mime_type="image/png", name="a.png")))
    assert (response.status_code, response.content) == (200, BYTES)
    assert response.headers["etag"] == f'"{hashlib.sha256(BYTES).hexdigest()}"'
    assert response.headers["content-length"] == str(len(BYTES))
    assert response.headers["accept-ranges"] == "bytes"


def test_a_stored_html_page_is_downloaded_and_never_rendered(
    api: httpx.Client, make_artifact: Callable[..., str]
) -> None:
    page = make_artifact(b"<script>alert(1)</script>", mime_type="text/html", name="p.html")
    headers = api.get(content(page)).headers
    assert headers["content-disposition"] == 'attachment; filename="p.html"'
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "private, no-cache"


def test_a_chinese_file_name_is_sent_encoded(
    api: httpx.Client, make_artifact: Callable[..., str]
) -> None:
    headers = api.get(content(make_artifact(b"x", name="截图.png"))).headers
    assert headers["content-disposition"] == ("attachment; filename*=utf-8''%E6%88%AA%E5%9B%BE.png")


@pytest.mark.parametrize(
    ("range_", "start", "stop"),
    [("0-0", 0, 1), ("100-", 100, 10240), ("-7", 10233, 10240), ("10000-99999", 10000, 10240)],
)
def test_a_range_is_sent_as_partial_content(
    api: httpx.Client, make_artifact: Callable[..., str], range_: str, start: int, stop: int
) -> None:
    artifact_id = make_artifact(BYTES, mime_type="image/png")
    response = api.get(content(artifact_id), headers={"Range": f"bytes={range_}"})
    assert (response.status_code, response.content) == (206, BYTES[start:stop])
    assert response.headers["content-range"] == f"bytes {start}-{stop - 1}/10240"
    assert response.headers["content-length"] == str(stop - start)


def test_a_range_outside_the_content_is_refused_with_the_size(
    api: httpx.Client, make_artifact: Callable[..., str]
) -> None:
    response = api.get(content(make_artifact(b"abc")), headers={"Range": "bytes=3-"})
    assert refusal(response, 416)["errorCode"] == "INVALID_PARAMETER"
    assert response.headers["content-range"] == "bytes */3"


def test_conditional_requests_compare_the_etag(
    api: httpx.Client, make_artifact: Callable[..., str]
) -> None:
    content_path = content(make_artifact(b"abc"))
    etag = api.get(content_path).headers["etag"]
    assert api.get(content_path, headers={"If-None-Match": f'"x", W/{etag}'}).status_code == 304
    assert api.get(content_path, headers={"If-None-Match": '"x"'}).status_code == 200
    range_header = {"Range": "bytes=0-0"}
    assert api.get(content_path, headers={**range_header, "If-Range": etag}).status_code == 206
    assert api.get(content_path, headers={**range_header, "If-Range": '"x"'}).content == b"abc"


def test_a_head_request_returns_all_headers_and_no_body(
    api: httpx.Client, make_artifact: Callable[..., str]
) -> None:
    response = api.head(content(make_artifact(BYTES)))
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["content-length"] == str(len(BYTES))


def test_an_empty_artifact_downloads_as_empty(
    api: httpx.Client, make_artifact: Callable[..., str]
) -> None:
    response = api.get(content(make_artifact(b"")))
    assert (response.status_code, response.content) == (200, b"")


@pytest.mark.parametrize("path", ["", "/content"])
def test_an_unreadable_artifact_answers_the_reason(
    api: httpx.Client,
    client_with: Callable[..., httpx.Client],
    make_artifact: Callable[..., str],
    path: str,
) -> None:
    expired, lost, other_artifact = (make_artifact(b"x") for _ in range(3))
    Artifact.objects.filter(id=expired).update(expired_at=datetime.now(UTC))
    Artifact.objects.filter(id=lost).update(sha256="0" * 64)
    foreign = client_with(workspace="elsewhere")
    for client, artifact_id, status, code in (
        (api, expired, 410, "ARTIFACT_EXPIRED"),
        (api, lost, 404, "ARTIFACT_NOT_FOUND"),
        (api, "art_missing", 404, "ARTIFACT_NOT_FOUND"),
        (foreign, other_artifact, 404, "ARTIFACT_NOT_FOUND"),
    ):
        response = client.get(f"/api/v1/artifacts/{artifact_id}{path}")
        assert refusal(response, status)["errorCode"] == code


def test_a_large_artifact_is_never_read_into_memory_as_a_whole(
    api: httpx.Client, make_artifact: Callable[..., str]
) -> None:
    size = 24 * 1024 * 1024
    content_path = content(make_artifact(os.urandom(size), mime_type="image/png"))
    received = 0
    tracemalloc.start()
    with api.stream("GET", content_path) as response:
        for chunk in response.iter_raw(chunk_size=65_536):
            received += len(chunk)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert received == size
    assert peak < size / 3


def test_every_file_is_closed_after_its_download(
    api: httpx.Client, make_artifact: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []
    make = downloads.FileChunks.__init__

    def watched(self: downloads.FileChunks, file: Any, span: downloads.ByteRange) -> None:
        opened.append(file)
        make(self, file, span)

    monkeypatch.setattr(downloads.FileChunks, "__init__", watched)
    content_path = content(make_artifact(b"x" * 3_000_000))
    assert len(api.get(content_path).content) == 3_000_000
    with api.stream("GET", content_path) as response:
        next(response.iter_raw(1024))  # and close the connection
    api.get("/api/v1/templates")
    assert len(opened) == 2
    assert eventually(lambda: all(file.closed for file in opened))


def test_a_stored_type_that_is_no_media_type_is_sent_as_bytes(
    api: httpx.Client, make_artifact: Callable[..., str]
) -> None:
    response = api.get(content(make_artifact(b"x", mime_type="text/html\r\nX-Added: 1")))
    assert response.headers["content-type"] == "application/octet-stream"
    assert "x-added" not in response.headers


def test_an_artifact_past_its_time_to_live_is_expired_before_its_deletion(
    api: httpx.Client, make_artifact: Callable[..., str]
) -> None:
    artifact_id = make_artifact(b"x")
    Artifact.objects.filter(id=artifact_id).update(expires_at=datetime.now(UTC))
    for path in ("", "/content"):
        response = api.get(f"/api/v1/artifacts/{artifact_id}{path}")
        assert refusal(response, 410)["errorCode"] == "ARTIFACT_EXPIRED"
