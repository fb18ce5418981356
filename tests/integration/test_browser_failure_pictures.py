"""A step that failed on a page shows what the page looked like."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from artifacts.models import Artifact
from artifacts.selectors import read_chunk
from decisions.principals import Principal
from runs.models import Run
from runs.services import submit_run
from tests.integration.workers import error_of
from tests.support.pages import PageServer, serve_pages

Ended = Callable[[str], Run]


@pytest.fixture
def pages() -> Iterator[PageServer]:
    with serve_pages() as server:
        yield server


def start(principal: Principal, template_id: str, **inputs: Any) -> str:
    options = {"mode": "async", "timeoutMs": 60000}
    return submit_run(
        principal=principal, template_id=template_id, inputs=inputs, options=options
    ).run_id


def test_a_field_that_is_not_there_is_shown_by_the_page(
    principal: Principal, ended: Ended, pages: PageServer
) -> None:
    url = pages.add("/no-field", "<title>Bare</title><h1>Nothing to fill in</h1>")
    query = {"mode": "semantic", "query": "search"}
    run = ended(start(principal, "search_extract", startUrl=url, query="q", searchField=query))
    assert error_of(run)["errorCode"] == "ELEMENT_NOT_FOUND"
    picture = Artifact.objects.get(run_id=run.id, kind="screenshot")
    assert error_of(run)["details"]["screenshotArtifactId"] == picture.id
    chunk = read_chunk(principal=principal, artifact_id=picture.id)
    assert chunk["mimeType"] == "image/jpeg"
    assert picture.step_index == error_of(run)["step"]["step"]


def test_an_address_that_leads_nowhere_has_no_picture(principal: Principal, ended: Ended) -> None:
    run = ended(start(principal, "batch_extract_pages", urls=["http://127.0.0.1:9/", "file:///x"]))
    assert run.status == "failed"
    assert not Artifact.objects.filter(run_id=run.id, kind="screenshot").exists()
