"""Artifacts in the admin site: displayed as text or as an image, never executed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.test import Client

from artifacts.models import Artifact
from artifacts.storage.blobs import blob_path
from tests.support.admin.downloads import downloaded_bytes

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32
JPEG = b"\xff\xd8\xff\xe0" + b"\0" * 32
HTML = b"<html><script>alert(1)</script></html>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'
MakeArtifact = Callable[..., str]


def address(artifact_id: str, view: str) -> str:
    """Return the address of an artifact's page or of its bytes."""
    return f"/admin/artifacts/artifact/{artifact_id}/{view}/"


@pytest.mark.parametrize(("data", "mime_type"), [(PNG, "image/png"), (JPEG, "image/jpeg")])
def test_an_image_is_displayed_inline(
    superuser_client: Client, make_artifact: MakeArtifact, data: bytes, mime_type: str
) -> None:
    artifact_id = make_artifact(data, mime_type=mime_type, name="shot")
    response = superuser_client.get(address(artifact_id, "inline"))
    assert (response.status_code, response["Content-Type"]) == (200, mime_type)
    assert response.content == data
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in response["Content-Security-Policy"]
    assert (
        address(artifact_id, "inline")
        in superuser_client.get(address(artifact_id, "change")).content.decode()
    )


def test_no_other_type_is_displayed_inline_whatever_its_row_claims(
    superuser_client: Client, make_artifact: MakeArtifact
) -> None:
    for mime_type in ("image/png", "image/svg+xml", "text/html"):
        for data in (HTML, SVG, b"", b"GIF"):
            response = superuser_client.get(
                address(make_artifact(data, mime_type=mime_type), "inline")
            )
            assert response.status_code == 415, (mime_type, data)
            assert response["Content-Type"].startswith("text/plain")
            assert data not in response.content or not data


def test_an_image_is_typed_by_its_bytes_not_by_its_row(
    superuser_client: Client, make_artifact: MakeArtifact
) -> None:
    response = superuser_client.get(address(make_artifact(PNG, mime_type="text/html"), "inline"))
    assert response["Content-Type"] == "image/png"


def test_a_download_is_an_attachment_of_bytes(
    superuser_client: Client, make_artifact: MakeArtifact
) -> None:
    artifact_id = make_artifact(
        HTML, mime_type="text/html", name='../"><svg onload=1>\r\nX: y.html'
    )
    response = superuser_client.get(address(artifact_id, "download"))
    assert downloaded_bytes(response) == HTML
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"].startswith("attachment")
    assert "<" not in response["Content-Disposition"]
    assert "/" not in response["Content-Disposition"]
    assert response["Content-Length"] == str(len(HTML))


def test_text_is_previewed_escaped(superuser_client: Client, make_artifact: MakeArtifact) -> None:
    artifact_id = make_artifact(HTML, mime_type="text/html", name='"><svg onload=1>')
    for page in (
        superuser_client.get(address(artifact_id, "change")),
        superuser_client.get("/admin/artifacts/artifact/"),
    ):
        text = page.content.decode()
        assert "<script>alert" not in text
        assert "<svg onload" not in text
        assert "&lt;svg onload=1&gt;" in text


def test_a_long_text_is_previewed_up_to_its_limit(
    superuser_client: Client, make_artifact: MakeArtifact
) -> None:
    page = superuser_client.get(address(make_artifact(b"ab" * 100_000), "change")).content.decode()
    assert "The first 64.0 KiB of 195.3 KiB" in page
    assert len(page) < 200_000


def test_broken_json_is_displayed_unchanged(
    superuser_client: Client, make_artifact: MakeArtifact
) -> None:
    for data in (b"[" * 60_000, b'{"a": NaN', b"\xff\xfe\x00"):
        artifact_id = make_artifact(data, mime_type="application/json")
        assert superuser_client.get(address(artifact_id, "change")).status_code == 200, data[:9]


def test_a_tombstone_is_displayed_as_expired(
    superuser_client: Client, make_artifact: MakeArtifact
) -> None:
    artifact_id = make_artifact(PNG, mime_type="image/png")
    Artifact.objects.update(expired_at=datetime.now(UTC))
    assert (
        "The bytes were deleted"
        in superuser_client.get(address(artifact_id, "change")).content.decode()
    )
    assert superuser_client.get(address(artifact_id, "inline")).status_code == 410
    assert superuser_client.get(address(artifact_id, "download")).status_code == 410


def test_lost_bytes_are_reported_without_a_server_error(
    superuser_client: Client, make_artifact: MakeArtifact, caplog: pytest.LogCaptureFixture
) -> None:
    from django.core.files.storage import storages

    artifact_id = make_artifact(b"precious")
    storages["artifacts"].delete(blob_path(Artifact.objects.get().sha256))
    assert "are lost" in superuser_client.get(address(artifact_id, "change")).content.decode()
    assert superuser_client.get(address(artifact_id, "download")).status_code == 404
    assert "missing in the storage" in caplog.text


def test_artifacts_are_found_by_run_and_by_hash(
    superuser_client: Client, make_artifact: MakeArtifact
) -> None:
    artifact_id = make_artifact(b"one", run_id="run_one")
    make_artifact(b"two", run_id="run_two")
    row = Artifact.objects.get(id=artifact_id)
    for term in (artifact_id, "run_one", row.sha256):
        found = (
            superuser_client.get(f"/admin/artifacts/artifact/?q={term}").context["cl"].result_list
        )
        assert [one.id for one in found] == [artifact_id], term
