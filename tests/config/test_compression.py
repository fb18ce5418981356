"""What the server compresses: pages, JSON and static files; no stream, range or new secret."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import httpx
import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory

from config.http.compression import accepts_gzip, compress
from runs.models import Run

GZIP = {"Accept-Encoding": "gzip"}


def test_a_page_is_compressed_and_its_length_is_random(superuser_client: Client) -> None:
    plain = superuser_client.get("/admin/runs/run/")
    answers = [superuser_client.get("/admin/runs/run/", headers=GZIP) for _ in range(5)]
    assert "Content-Encoding" not in plain
    assert "Accept-Encoding" in plain["Vary"]
    assert {answer["Content-Encoding"] for answer in answers} == {"gzip"}
    assert b"</html>" in gzip.decompress(answers[0].content)
    assert len({len(answer.content) for answer in answers}) > 1
    assert len(answers[0].content) < len(plain.content) / 3


def test_a_long_list_of_the_api_is_compressed(
    api: httpx.Client, make_run: Callable[..., Run]
) -> None:
    for _ in range(5):
        make_run()
    answer = api.get("/api/v1/runs")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert len(answer.json()["runs"]) == 5
    assert "Content-Encoding" not in api.get("/healthz").headers


def test_the_page_that_shows_a_new_token_is_not_compressed(superuser_client: Client) -> None:
    form = {"name": "laptop", "trust": "remote", "scopes": ["runs:read"], "expires_in": "30"}
    page = superuser_client.post("/admin/decisions/token/new/", form, headers=GZIP)
    assert page.status_code == 200
    assert b"</html>" in page.content
    assert "Content-Encoding" not in page


def test_an_answer_to_a_write_is_not_compressed() -> None:
    for method in ("POST", "PUT", "HEAD"):
        request = RequestFactory().generic(method, "/", headers=GZIP)
        answer = HttpResponse(b'{"secret": "s"}' * 500, content_type="application/json")
        assert "Content-Encoding" not in compress(request, answer).headers


@pytest.mark.parametrize("start", [0, 500])
def test_an_artifact_and_its_range_are_not_compressed(
    api: httpx.Client, make_artifact: Callable[..., str], start: int
) -> None:
    artifact_id = make_artifact(b"a" * 5000, mime_type="text/plain", name="a.txt")
    path = f"/api/v1/artifacts/{artifact_id}/content"
    answer = api.get(path, headers={"Range": f"bytes={start}-"} if start else {})
    assert "Content-Encoding" not in answer.headers
    assert len(answer.content) == 5000 - start


def test_a_static_file_is_compressed_unless_a_range_is_requested(web: str) -> None:
    address = f"{web}/static/continuity/admin.css"
    whole, plain = httpx.get(address), httpx.get(address, headers={"Accept-Encoding": "identity"})
    part = httpx.get(address, headers={"Range": "bytes=0-9"})
    assert whole.headers["Content-Encoding"] == "gzip"
    assert whole.content == plain.content
    assert "Content-Encoding" not in plain.headers
    assert (part.status_code, part.content) == (206, plain.content[:10])
    again = httpx.get(address, headers={"If-None-Match": whole.headers["ETag"]})
    assert again.status_code == 304


def test_a_font_is_sent_as_it_is(web: str) -> None:
    answer = httpx.get(f"{web}/static/unfold/fonts/inter/Inter-Regular.woff2")
    assert answer.status_code == 200
    assert "Content-Encoding" not in answer.headers


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ("gzip, br", True),
        ("br;q=1, GZIP;q=0.5", True),
        ("*", True),
        ("gzip;q=0", False),
        ("br", False),
    ],
)
def test_gzip_is_used_only_where_it_is_accepted(accepted: str, expected: bool) -> None:
    assert accepts_gzip(accepted) is expected
